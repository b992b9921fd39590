package load

import (
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/audit"
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

	least int64 // of its audit
}

// judge checks C1 for one key and every interval of a load, and checks that no credit was lost. It
// uses only facts that hold for every order of the calls.
//
// The contract defines the time of an instant as the latest reading that any call has brought
// by then. The judge counts only readings that calls on the key itself brought, because a
// bucket does not know the readings of other keys; see "Late readings" in package tb. With these
// readings C1 has no exception. A grant leaves its reading in the bucket. A refusal at a reading
// shows that the bucket was not full then. So either bounds the later grants.
//
// The order in which calls take effect is unknown, but each takes effect between the two events of
// its record. So an audit has the events for times. What was certainly supplied before an event
// follows from the latest reading of a call that was done by then, and what may have been supplied
// from the latest reading of a call that was made by then. The tokens that were forgiven between
// the two events are bounded in the same way.
//
// All amounts are in tokens times the period of the limit, so that the supply is an integer.
// The amounts of a load are far below the range of an int64.
type judge struct {
	limit tb.Limit

	auditor                  audit.Auditor[int64]
	grantsOfRound            []audit.Grant[int64]
	made                     int64 // amounts granted by calls so far
	latestMade, latestDone   time.Duration
	forgivenBefore, forgiven float64 // tokens forgiven: a lower bound and an upper bound
	refusals, granted        int
	overdrawn, lost          int // rounds that violate C1, and refusals that violate C2
	first                    string
}

func (a *judge) amount(tokens float64) int64  { return int64(tokens * float64(a.limit.Per)) }
func (a *judge) supply(t time.Duration) int64 { return int64(t) * a.limit.Tokens }
func (a *judge) cost(r *record) int64         { return int64(r.n) * int64(a.limit.Per) }
func (a *judge) most(t time.Duration) int64   { return a.capacity() + a.supply(t) }
func (a *judge) capacity() int64              { return a.amount(float64(a.limit.Capacity)) }

func (a *judge) quantum() int64 { return max(int64(a.limit.Per)/1e6, a.capacity()>>23) }

// called is the event at which r is made.
func (a *judge) called(r *record) {
	a.latestMade = max(a.latestMade, r.at)
	if r.allowed { // the interval begins before r has asked what was forgiven
		a.made += a.cost(r)
		r.least = a.supply(a.latestDone) + a.amount(a.forgivenBefore) - a.capacity()
	}
	a.forgivenBefore = max(a.forgivenBefore, r.forgivenBefore)
}

// returned is the event at which r has returned.
func (a *judge) returned(r *record) {
	a.latestDone = max(a.latestDone, r.at)
	a.forgiven = max(a.forgiven, r.forgivenAfter)
	if r.allowed {
		a.granted += r.n
		a.grantsOfRound = append(a.grantsOfRound, audit.Grant[int64]{
			From: r.made, To: r.done, Amount: a.cost(r), Least: r.least,
			Most: a.supply(a.latestMade) + a.amount(max(a.forgiven, a.forgivenBefore)),
		})
		return
	}
	a.refusals++
	// The tokens granted until then and the cost exceed the capacity and the supply, unless the bucket
	// was full again after its first call.
	if a.made+a.cost(r) < a.most(r.at)-a.quantum() {
		a.lost++
		a.recordFault("%+v: refused although %d were left", r, a.most(r.at)-a.made)
	}
}

// endRound checks C1 in the intervals that end in a round.
func (a *judge) endRound() {
	if len(a.grantsOfRound) == 0 {
		return
	}
	if over := a.auditor.Add(a.grantsOfRound); over > a.quantum() {
		a.overdrawn++
		a.recordFault("granted %d more than C1 allows", over)
	}
	a.grantsOfRound = a.grantsOfRound[:0]
}

func (a *judge) recordFault(format string, args ...any) {
	if a.first == "" {
		a.first = fmt.Sprintf(format, args...)
	}
}

// newJudges returns the judges of a number of keys, whose buckets are full at reading 0.
func newJudges(l tb.Limit, keys int) []*judge {
	all := make([]*judge, keys)
	for i := range all {
		all[i] = &judge{limit: l}
	}
	return all
}

// playBack goes through records, which may be in any order and of several keys. The records of the
// call before had returned when the first of these was made.
func playBack(all []*judge, records []record) {
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
	for _, a := range all {
		a.endRound()
	}
}
