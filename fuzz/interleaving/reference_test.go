package interleaving

import (
	"iter"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// reference is tb/mutex as the target of the calls of one thread.
type reference struct {
	*mutex.TokenBucket
	*caller // nil if nobody can come in between
}

func (r reference) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := r.TokenBucket.Charge(key, cost)
	return &c, err
}

// TakeAll is what tb.TakeAll is documented to be. Each look at a bucket, each grant and
// each undoing is a step.
func (r reference) TakeAll(
	t time.Time, charges []tb.Charge, decisions []tb.Decision,
) (bool, error) {
	allowed := true
	for i, c := range charges {
		r.pause(inside)
		decisions[i], _ = c.Check(t)
		allowed = allowed && decisions[i].Allowed
	}
	if !allowed {
		return false, nil
	}
	taken := 0
	for i, c := range charges {
		r.pause(inside)
		if decisions[i], _ = c.Take(t); !decisions[i].Allowed {
			break
		}
		taken++
	}
	if taken == len(charges) {
		return true, nil
	}
	for _, c := range slices.Backward(charges[:taken]) {
		if lost := r.pause(undoing); !lost {
			c.Undo()
		}
	}
	return false, nil
}

// place is where a thread is.
type place int

const (
	outside place = iota // of any call
	inside
	undoing // inside, and about to undo a charge
)

// caller is a thread that makes its calls on the reference in steps.
type caller struct {
	next  func() (answered, place, bool)
	stop  func()
	yield func(answered, place) bool // nil if it is stopped
	fresh bool                       // no step of the call is made yet
	lost  bool                       // the next step undoes nothing
}

func newCaller(l *mutex.TokenBucket, asks []ask, now *time.Time) *caller {
	r := new(caller)
	r.next, r.stop = iter.Pull2(func(yield func(answered, place) bool) {
		r.yield = yield
		for _, c := range asks {
			r.fresh = true
			if a := c.on(reference{l, r}, now); r.yield == nil || !yield(a, outside) {
				return
			}
		}
	})
	return r
}

// step makes the next step. If it was the last of a call, that has answered.
func (r *caller) step(lost bool) (answered, place) {
	r.lost = lost
	a, at, _ := r.next()
	return a, at
}

// pause comes before a step, and waits for its turn. It returns whether what is to be
// undone is lost.
func (r *caller) pause(at place) (lost bool) {
	if r == nil || r.yield == nil {
		return false
	}
	if !r.fresh && !r.yield(answered{}, at) {
		r.yield = nil
	}
	r.fresh = false
	return r.lost
}
