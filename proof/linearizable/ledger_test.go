package linearizable

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/seed-181794aa/ratelimit/internal/mutexstate"
	"github.com/seed-181794aa/ratelimit/proof/span"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// ledger is a state of the oracle for calls that reserve tokens and change the limit: the steps
// that led to it. A call has one of several outcomes:
//
//   - A Cancel may give nothing back, because the bucket has moved.
//   - A call that was under way during a SetLimit may be decided by the limit before it.
type ledger struct {
	setup  *setup
	parent *ledger
	last   step
	next   map[step]*ledger
	reply  reply  // to last
	digest string // of the buckets
	limits int    // the number of SetLimits
}

// step is a call and its outcome.
type step struct {
	*request
	lost bool // a Cancel gives nothing back
	back int  // the call is decided by the limit before the latest ones, so many of them
}

func newLedger(s *setup) *ledger { return &ledger{setup: s, next: make(map[step]*ledger)} }

// steps returns the outcomes that r may have.
func (o *ledger) steps(r *request, moves bool) []step {
	all := []step{{request: r}}
	switch {
	case r.verb == cancel && moves:
		all = append(all, step{request: r, lost: true})
	case r.verb != cancel && r.verb != setLimit && r.changing:
		for n := range o.limits {
			all = append(all, step{request: r, back: n + 1})
		}
	}
	return all
}

// then returns the state after s.
func (o *ledger) then(s step) *ledger {
	next, ok := o.next[s]
	if ok {
		return next
	}
	next = &ledger{setup: o.setup, parent: o, last: s, next: make(map[step]*ledger), limits: o.limits}
	if s.verb == setLimit {
		next.limits++
	}
	c := new(sharedClock)
	l, _, a := next.replay(c)
	next.reply = a
	next.digest = fmt.Sprint(mutexstate.States(l.reserver))
	o.next[s] = next
	return next
}

// replay makes the calls that led to o on a new limiter, whose clock is c. It returns the limits
// that the limiter has had, and the last reply.
func (o *ledger) replay(c *sharedClock) (*session, []any, reply) {
	if o.parent == nil {
		l, err := mutex.New[string](o.setup.limit, o.setup.options(c)...)
		if err != nil {
			panic(err)
		}
		span.Start(l)
		return newSession(l), nil, reply{}
	}
	s, limits, _ := o.parent.replay(c)
	if o.last.verb == setLimit {
		limits = append(limits, mutexstate.Limits(s.reserver))
	}
	if o.last.lost {
		return s, limits, reply{}
	}
	if o.last.back > 0 {
		defer mutexstate.Use(s.reserver, limits[len(limits)-o.last.back], o.last.key)()
	}
	return s, limits, o.last.on(s, c)
}

// ledgerModel returns the oracle as a model for porcupine. moves reports whether buckets may move.
func ledgerModel(s *setup, moves bool) porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{newLedger(s)} },
		Step: func(state, in, out any) (next []any) {
			o, r := state.(*ledger), in.(*request)
			for _, s := range o.steps(r, moves) {
				after := o.then(s)
				same := func(other any) bool { return other.(*ledger).digest == after.digest }
				if after.reply == out.(reply) && !slices.ContainsFunc(next, same) {
					next = append(next, after)
				}
			}
			return next
		},
		DescribeOperation: func(in, out any) string {
			a := out.(reply)
			return fmt.Sprintf("%v: %+v %v %v", in, a.Decision, a.delay, a.err)
		},
	}
	return nondeterministic.ToModel()
}
