package linearizable

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/seed-181794aa/ratelimit/internal/mutexstate"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// A history is linearizable if there is an order of its calls in which the oracle, tb/mutex,
// returns every reply of the history, bit for bit. The order never puts a call before a call
// that had returned when it was made. For one exception see oracle.mayDiffer. Len and Stats
// are not compared.

// step is a call of the oracle, which has one of several outcomes.
type step struct {
	*request
	lost bool // a Cancel gives nothing back, because the bucket has moved
	back int  // the call is decided by the limit before the latest ones, so many of them
}

// oracle is a state of the oracle: the steps that led to it, without calls that change nothing.
// States form a tree, and each state caches its replies and the states that follow it. Only one
// check may use it at a time.
type oracle struct {
	scenario *scenario
	parent   *oracle
	last     step
	limits   int // the number of SetLimits
	known    map[step]outcome
}

// outcome is the reply to a step, and the state after it.
type outcome struct {
	reply
	next *oracle
}

// steps returns the outcomes that r may have. A call that was under way during a SetLimit may be
// decided by the limit before it.
func (o *oracle) steps(r *request) []step {
	all := []step{{request: r}}
	switch {
	case r.verb == cancel && o.scenario.moves():
		all = append(all, step{request: r, lost: true})
	case r.verb != cancel && r.verb != setLimit && r.changing:
		for n := range o.limits {
			all = append(all, step{request: r, back: n + 1})
		}
	}
	return all
}

// then returns the oracle's reply to s, and its state after s.
func (o *oracle) then(s step) (reply, *oracle) {
	known, ok := o.known[s]
	if !ok {
		known.reply, known.next = o.replay().do(s), o
		// After a SetLimit, a refused call, too, may move its bucket to the new limit.
		refused := s.verb <= reserve && !known.Allowed
		if s.verb != peek && !refused || o.limits > 0 {
			known.next = &oracle{o.scenario, o, s, o.limits, map[step]outcome{}}
		}
		if s.verb == setLimit {
			known.next.limits++
		}
		o.known[s] = known
	}
	return known.reply, known.next
}

// past is tb/mutex in a state of the oracle, with the limits that it has had.
type past struct {
	*session
	mutex  *mutex.TokenBucket
	limits []any
}

// replay makes the calls that led to o.
func (o *oracle) replay() *past {
	if o.parent != nil {
		p := o.parent.replay()
		p.do(o.last)
		return p
	}
	p := &past{}
	p.session = newSession(o.scenario, func(opts ...tb.Option) (l limiter, err error) {
		p.mutex, err = mutex.New[string](o.scenario.limit, opts...)
		return p.mutex, err
	})
	return p
}

func (p *past) do(s step) reply {
	switch {
	case s.lost:
		return reply{}
	case s.verb == setLimit:
		p.limits = append(p.limits, mutexstate.Limits(p.mutex))
	case s.back > 0:
		defer mutexstate.Use(p.mutex, p.limits[len(p.limits)-s.back], s.key)()
	}
	return p.session.do(s.request)
}

// sameAs reports whether all buckets of two states are the same.
func (o *oracle) sameAs(other *oracle) bool {
	return o == other || fmt.Sprint(mutexstate.States(o.replay().mutex)) ==
		fmt.Sprint(mutexstate.States(other.replay().mutex))
}

// mayDiffer reports whether a may be the reply to r although the oracle returns want. There are
// three cases, all of calls that add no key, because they do not wait for inserts:
//
//   - An insert under way is about to add the key of r, and the key is not in the table yet.
//   - An insert under way has evicted the key of r. The reply is that for an absent key, although
//     the other key is not in the table yet.
//   - A Peek of a new key in a full table sees the table as the last insert saw it. It may be
//     refused for less time, or not at all.
func (o *oracle) mayDiffer(r *request, want, a reply) bool {
	capacity := o.scenario.limit.Capacity
	impossible := r.verb == allowAt && r.cost > float64(capacity)
	if !r.overlapped || a.err != nil || r.verb != peek && !impossible {
		return false
	}
	full := tb.Decision{RetryAfter: tb.Never, Remaining: capacity}
	if !impossible {
		full = tb.Decision{Allowed: true, Remaining: capacity - 1}
	}
	noRoom := r.verb == peek && !want.Allowed && o.isAbsent(r)
	switch {
	case a.Decision == full && (r.inserting || noRoom):
		return true
	case noRoom && !a.Allowed && a.Remaining == 0 && a.RetryAfter > 0 &&
		a.RetryAfter < want.RetryAfter:
		return true
	case !r.evicting:
		return false
	}
	if r.absent == nil {
		r.absent = &request{verb: r.verb, at: r.at, key: "absent", cost: r.cost, overlapped: true}
	}
	want, _ = o.then(step{request: r.absent})
	return a == want || o.mayDiffer(r.absent, want, a)
}

// isAbsent reports whether the key of r, which the oracle refuses, is not in the table. A key in
// the table would lack tokens.
func (o *oracle) isAbsent(r *request) bool {
	capacity := o.scenario.limit.Capacity
	a, _ := o.then(step{request: allow(r.at, r.key, capacity+1)})
	return a.Remaining == capacity
}

// model returns the oracle as a model for porcupine.
func (s *scenario) model() porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{&oracle{scenario: s, known: map[step]outcome{}}} },
		Step: func(state, in, out any) (next []any) {
			o, a := state.(*oracle), out.(reply)
			for _, s := range o.steps(in.(*request)) {
				want, after := o.then(s)
				same := func(other any) bool { return after.sameAs(other.(*oracle)) }
				if (want == a || o.mayDiffer(s.request, want, a)) && !slices.ContainsFunc(next, same) {
					next = append(next, after)
				}
			}
			return next
		},
	}
	return nondeterministic.ToModel()
}

// linearizable reports whether a history is linearizable.
func (s *scenario) linearizable(history []porcupine.Operation) bool {
	return porcupine.CheckOperations(s.model(), history)
}

// inOrderOfCall reports whether the order in which the calls were made explains the history, so
// that the history says nothing about concurrency.
func (s *scenario) inOrderOfCall(history []porcupine.Operation) bool {
	m := s.model()
	ok, state := true, m.Init()
	for _, o := range byCall(history) {
		if ok, state = m.Step(state, o.Input, o.Output); !ok {
			break
		}
	}
	return ok
}
