package load

import (
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// record is one call of a load, with its reading. made and done are when it was made and
// when it had returned, on a clock that counts these events from 0 on.
type record struct {
	key        int
	made, done int64
	at         time.Duration
	n          int
	allowed    bool

	// What Stats said was forgiven, before the call and after it, in tokens.
	forgivenBefore, forgivenAfter float64
}

// audit checks C1 for one key and every interval of a load, and that no credit was lost,
// with what is known for sure.
//
// C1 takes for the time of an instant the latest reading that was brought by then. Here
// only readings brought to the key itself count, and with them C1 has no exception: a
// grant leaves its reading in the bucket, and what is refused at a reading shows that the
// bucket would not have been full then, so either bounds what is granted from there on.
// (What other keys were told, a bucket cannot know; see "Late readings" in package tb.)
//
// In what order calls took effect is not known, only that each did between the two events
// of its record. So after a and up to b at least
//
//	granted by calls that were done by b − granted by calls that were made by a
//
// tokens were granted. The time of a is at least the latest reading of a call that was
// done by then, and the time of b at most the latest of one that was made by then. If
// these tokens exceed the capacity and what the rate supplies between these times, C1 is
// violated, whatever the order was. In one pass over the events, the least of what stands
// for a is carried along to be compared with each b. What was forgiven between a and b is
// bounded in the same way.
//
// All amounts are in tokens times the period of the limit, so that the supply is an
// integer; those of a load fit easily.
type audit struct {
	limit tb.Limit

	made, done                int64 // granted by calls that were made, or done
	latestMade, latestDone    time.Duration
	forgivenBefore, forgiven  float64 // tokens, at least and at most
	least                     int64   // of made − supply(latestDone) − forgivenBefore
	grants, refusals, granted int
	overdrawn, lost           int // violations of C1, and of C2
	first                     string
}

// newAudit starts when the bucket is full, at the reading 0.
func newAudit(l tb.Limit) *audit { return &audit{limit: l} }

func (a *audit) amount(tokens float64) int64  { return int64(tokens * float64(a.limit.Per)) }
func (a *audit) supply(t time.Duration) int64 { return int64(t) * a.limit.Tokens }
func (a *audit) cost(r *record) int64         { return int64(r.n) * int64(a.limit.Per) }
func (a *audit) most(t time.Duration) int64   { return a.capacity() + a.supply(t) }
func (a *audit) capacity() int64              { return a.amount(float64(a.limit.Capacity)) }

func (a *audit) quantum() int64 { return max(int64(a.limit.Per)/1e6, a.capacity()>>23) }

// make is the event that r is made, and finish that it is done.
func (a *audit) make(r *record) {
	a.latestMade = max(a.latestMade, r.at)
	a.forgivenBefore = max(a.forgivenBefore, r.forgivenBefore)
	if r.allowed {
		a.made += a.cost(r)
	}
	a.seeLeast()
}

func (a *audit) finish(r *record) {
	a.latestDone = max(a.latestDone, r.at)
	a.forgiven = max(a.forgiven, r.forgivenAfter)
	if r.allowed {
		a.grants++
		a.granted += r.n
		a.done += a.cost(r)
		forgiven := a.amount(max(a.forgiven, a.forgivenBefore))
		over := a.done - a.supply(a.latestMade) - forgiven - a.least
		if over > a.capacity()+a.quantum() {
			a.overdrawn++
			a.fault("%+v: %d more than C1 allows", r, over-a.capacity())
		}
	} else {
		a.refusals++
		// What was granted until then, and with it its cost, is more than the bucket can
		// have been given, if it was never full after its first call.
		if a.made+a.cost(r) < a.most(r.at)-a.quantum() {
			a.lost++
			a.fault("%+v: refused, and %d were left", r, a.most(r.at)-a.made)
		}
	}
	a.seeLeast()
}

func (a *audit) seeLeast() {
	a.least = min(a.least, a.made-a.supply(a.latestDone)-a.amount(a.forgivenBefore))
}

func (a *audit) fault(format string, args ...any) {
	if a.first == "" {
		a.first = fmt.Sprintf(format, args...)
	}
}

// audits checks the records of a load, in any order, and returns the audit of each key.
func audits(l tb.Limit, keys int, records []record) []*audit {
	all := make([]*audit, keys)
	for i := range all {
		all[i] = newAudit(l)
	}
	events := make([]*record, 2*len(records))
	for i := range records {
		r := &records[i]
		events[r.made], events[r.done] = r, r
	}
	for i, r := range events {
		if int64(i) == r.made {
			all[r.key].make(r)
		} else {
			all[r.key].finish(r)
		}
	}
	return all
}
