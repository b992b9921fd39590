package load

import (
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// record is one call of a load, with its reading. made and done are the numbers of the events
// at which it was made and at which it had returned. Events are numbered from 0.
type record struct {
	key        int
	made, done int64
	at         time.Duration
	n          int
	allowed    bool

	// Stats().Forgiven before the call and after it, in tokens.
	forgivenBefore, forgivenAfter float64
}

// audit checks C1 for one key and every interval of a load, and checks that no credit was
// lost. It uses only facts that hold for every order of the calls.
//
// The contract defines the time of an instant as the latest reading that any call has brought
// by then. The audit counts only readings that calls on the key itself brought, because a
// bucket does not know the readings of other keys; see "Late readings" in package tb. With these
// readings C1 has no exception. A grant leaves its reading in the bucket. A refusal at a reading
// shows that the bucket was not full then. So either bounds the later grants.
//
// The order in which calls take effect is unknown, but each takes effect between the two events
// of its record. Let a and b be two events. After a and up to b, at least
//
//	granted by calls that were done by b − granted by calls that were made by a
//
// tokens were granted. The time of a is at least the latest reading of a call that was done by
// a. The time of b is at most the latest reading of a call that was made by b. C1 is violated
// in every order if these tokens exceed the capacity and the supply between these times. The
// audit goes through the events once and carries the least value of the terms of a, to compare
// it with each b. It bounds the tokens that were forgiven between a and b in the same way.
//
// All amounts are in tokens times the period of the limit, so that the supply is an integer.
// The amounts of a load are far below the range of an int64.
type audit struct {
	limit tb.Limit

	made, done                int64 // amounts granted by calls so far
	latestMade, latestDone    time.Duration
	forgivenBefore, forgiven  float64 // tokens forgiven: a lower bound and an upper bound
	least                     int64   // least value of made − supply(latestDone) − forgivenBefore
	grants, refusals, granted int
	overdrawn, lost           int // violations of C1, and of C2
	first                     string
}

// newAudit returns an audit of a bucket that is full at reading 0.
func newAudit(l tb.Limit) *audit { return &audit{limit: l} }

func (a *audit) amount(tokens float64) int64  { return int64(tokens * float64(a.limit.Per)) }
func (a *audit) supply(t time.Duration) int64 { return int64(t) * a.limit.Tokens }
func (a *audit) cost(r *record) int64         { return int64(r.n) * int64(a.limit.Per) }
func (a *audit) most(t time.Duration) int64   { return a.capacity() + a.supply(t) }
func (a *audit) capacity() int64              { return a.amount(float64(a.limit.Capacity)) }

func (a *audit) quantum() int64 { return max(int64(a.limit.Per)/1e6, a.capacity()>>23) }

// called is the event at which r is made.
func (a *audit) called(r *record) {
	a.latestMade = max(a.latestMade, r.at)
	a.forgivenBefore = max(a.forgivenBefore, r.forgivenBefore)
	if r.allowed {
		a.made += a.cost(r)
	}
	a.updateLeast()
}

// returned is the event at which r has returned.
func (a *audit) returned(r *record) {
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
			a.recordFault("%+v: granted %d more than C1 allows", r, over-a.capacity())
		}
	} else {
		a.refusals++
		// The tokens granted until then and the cost exceed the capacity and the supply,
		// unless the bucket was full again after its first call.
		if a.made+a.cost(r) < a.most(r.at)-a.quantum() {
			a.lost++
			a.recordFault("%+v: refused although %d were left", r, a.most(r.at)-a.made)
		}
	}
	a.updateLeast()
}

func (a *audit) updateLeast() {
	a.least = min(a.least, a.made-a.supply(a.latestDone)-a.amount(a.forgivenBefore))
}

func (a *audit) recordFault(format string, args ...any) {
	if a.first == "" {
		a.first = fmt.Sprintf(format, args...)
	}
}

// newAudits returns the audits of a number of keys.
func newAudits(l tb.Limit, keys int) []*audit {
	all := make([]*audit, keys)
	for i := range all {
		all[i] = newAudit(l)
	}
	return all
}

// playBack goes through records, which may be in any order and of several keys. The records of the
// call before had returned when the first of these was made.
func playBack(all []*audit, records []record) {
	first := records[0].made
	for i := range records {
		first = min(first, records[i].made)
	}
	events := make([]*record, 2*len(records))
	for i := range records {
		r := &records[i]
		events[r.made-first], events[r.done-first] = r, r
	}
	for i, r := range events {
		if int64(i) == r.made-first {
			all[r.key].called(r)
		} else {
			all[r.key].returned(r)
		}
	}
}
