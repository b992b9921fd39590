package interleaving

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/mutexstate"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// reference is tb/mutex as a limiter for the calls of one thread.
type reference struct {
	*mutex.TokenBucket
	*caller // nil if no other thread makes calls
}

// Has reports whether key has a bucket.
func (r reference) Has(key string) bool { return mutexstate.States(r.TokenBucket)[key] != nil }

func (r reference) Peek(ctx context.Context, key string) (tb.Decision, error) {
	defer r.useLimit(key)()
	d, err := r.TokenBucket.Peek(ctx, key)
	if !d.Allowed && !r.Has(key) {
		r.markMild(ownBit)
	}
	return d, err
}

func (r reference) AllowAt(t time.Time, key string, cost float64) (tb.Decision, error) {
	defer r.useLimit(key)()
	if d, ok := r.makeRoom(t, key, int(cost)); !ok {
		return d, nil
	}
	defer r.unlock()
	return r.TokenBucket.AllowAt(t, key, cost)
}

func (r reference) Allow(_ context.Context, key string) (tb.Decision, error) {
	return r.AllowAt(*r.client.now, key, 1)
}

// standIn is the key that holds the slot of a new key until the new key is inserted.
const standIn = "stand-in"

// makeRoom is the first step of a call on a new key: it evicts keys. Until the call inserts its
// key, calls of other threads that take nothing may see that the evicted keys are gone. If the
// table refuses the key, makeRoom returns the answer and false.
func (r reference) makeRoom(t time.Time, key string, n int) (d tb.Decision, ok bool) {
	if r.caller == nil || n > capacity || r.Has(key) {
		return d, true
	}
	r.lock()
	keys := r.Len()
	if d, _ = r.TokenBucket.AllowAt(t, standIn, float64(n)); !d.Allowed {
		r.unlock()
		return d, false
	}
	if r.Len() <= keys { // a key was evicted
		r.fresh = false
		r.pause(inside)
	}
	r.Forget(standIn)
	return d, true
}

// charge is a charge on a bucket of the reference.
type charge struct {
	*mutex.Charge[string]
	key string
	n   int
	of  reference
}

func (r reference) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := r.TokenBucket.Charge(key, cost)
	return &charge{&c, key, int(cost), r}, err
}

func (r reference) ChargeIn(tier int, key string, cost float64) (tb.Charge, error) {
	c, err := r.TokenBucket.ChargeIn(tier, key, cost)
	return &charge{&c, key, int(cost), r}, err
}

func (c *charge) Peek(t time.Time) (tb.Decision, error) {
	defer c.of.useLimit(c.key)()
	return c.Charge.Peek(t)
}

func (c *charge) Take(t time.Time) (tb.Decision, error) {
	defer c.of.useLimit(c.key)()
	return c.Charge.Take(t)
}

// TakeAll does what the documentation of tb.TakeAll says. Each check, each grant and each undo
// is a step.
func (r reference) TakeAll(
	t time.Time, charges []tb.Charge, decisions []tb.Decision,
) (bool, error) {
	allowed := true
	for i, c := range charges {
		other := r.pause(inside)
		decisions[i], _ = c.Peek(t)
		if p, ok := c.(*charge); ok && !decisions[i].Allowed && p.n <= capacity && !r.Has(p.key) {
			if r.markMild(i); other {
				decisions[i] = tb.Decision{Allowed: true, Remaining: capacity - p.n}
			}
		}
		allowed = allowed && decisions[i].Allowed
	}
	if !allowed {
		return false, nil
	}
	taken := 0
	for i, c := range charges {
		r.pause(inside)
		if decisions[i] = r.take(t, c); !decisions[i].Allowed {
			break
		}
		taken++
	}
	if taken == len(charges) {
		return true, nil
	}
	for _, c := range slices.Backward(charges[:taken]) {
		if lost := r.pause(undoing); !lost {
			c.Cancel()
		}
	}
	return false, nil
}

func (r reference) take(t time.Time, c tb.Charge) (d tb.Decision) {
	if p, ok := c.(*charge); ok {
		if d, ok := r.makeRoom(t, p.key, p.n); !ok {
			return d
		}
		defer r.unlock()
	}
	d, _ = c.Take(t)
	return d
}

func (r reference) Reserve(
	ctx context.Context, key string, cost float64,
) (tb.Reservation, error) {
	defer r.useLimit(key)()
	return r.TokenBucket.Reserve(ctx, key, cost)
}

// Cancel does nothing if the step has its second outcome.
func (r reference) Cancel(_ string, v tb.Reservation) {
	if r.caller == nil || !r.other {
		v.Cancel()
	}
}

func (r reference) Settle(key string, v tb.Reservation, actual float64) error {
	if r.caller != nil && r.other && r.shared {
		return nil
	}
	defer r.useLimit(key)()
	return v.Settle(actual)
}

func (reference) Receipt(tb.Reservation) uint64 { return 0 }

func (r reference) SetLimit(limit tb.Limit) error {
	*r.earlier = mutexstate.Limits(r.TokenBucket)
	return r.TokenBucket.SetLimit(limit)
}

func (r reference) SetTier(tier int, limit tb.Limit) error {
	*r.earlier = mutexstate.Limits(r.TokenBucket)
	return r.TokenBucket.SetTier(tier, limit)
}

func (r reference) Hold(ctx context.Context, key string, until time.Time) error {
	defer r.useLimit(key)()
	if r.caller != nil {
		if _, ok := r.makeRoom(*r.client.now, key, 1); !ok {
			return tb.ErrTableFull
		}
		defer r.unlock()
	}
	return r.TokenBucket.Hold(ctx, key, until)
}

// useLimit makes the limiter use the earlier limit if the step has its second outcome. The function
// that it returns makes the limiter use the present limit again.
func (r reference) useLimit(key string) (restore func()) {
	if r.caller == nil || !r.other || *r.earlier == nil {
		return func() {}
	}
	return mutexstate.Use(r.TokenBucket, *r.earlier, key)
}

// phase is the phase of a thread between two steps.
type phase int

const (
	outside phase = iota // between two calls
	inside               // in a call
	undoing              // in a call, and about to undo a charge
	blocked              // in a call, and waiting for the lock of inserts
)

// caller is a thread that makes its calls on the reference in steps.
type caller struct {
	next    func() (answer, phase, bool)
	stop    func()
	yield   func(answer, phase) bool // nil if the thread is stopped
	inserts *insertLock
	client  *client
	earlier *any  // the limits before the latest SetLimit, or nil
	shared  bool  // the second outcome of Settle is that it does nothing
	fresh   bool  // the call has not made a step
	other   bool  // the next step has its second outcome
	mild    uint8 // the field mild of the answer to the call
}

// insertLock is the lock of inserts.
type insertLock struct{ holder *caller }

func newCaller(
	l *mutex.TokenBucket, calls []call, before *client, inserts *insertLock, earlier *any,
) *caller {
	r := &caller{inserts: inserts, client: before.after(), earlier: earlier}
	r.client.now = before.now
	r.next, r.stop = iter.Pull2(func(yield func(answer, phase) bool) {
		r.yield = yield
		for _, c := range calls {
			r.fresh, r.mild = true, 0
			a := r.client.call(reference{l, r}, c)
			a.mild = r.mild
			if r.yield == nil || !yield(a, outside) {
				return
			}
		}
	})
	return r
}

// step makes the next step. If it is the last step of a call, step returns the answer.
func (r *caller) step(other bool) (answer, phase) {
	r.other = other
	a, p, _ := r.next()
	return a, p
}

// pause waits for the next turn of the thread, which is in phase p. It reports whether the next
// step has its second outcome.
func (r *caller) pause(p phase) (other bool) {
	if r == nil || r.yield == nil {
		return false
	}
	if !r.fresh && !r.yield(answer{}, p) {
		r.yield = nil
	}
	r.fresh = false
	return r.other
}

// lock takes the lock of inserts. If another thread holds it, the thread is blocked.
func (r *caller) lock() {
	switch {
	case r == nil || r.yield == nil:
	case r.inserts.holder == nil:
		r.inserts.holder = r
	case !r.yield(answer{}, blocked):
		r.yield = nil
	}
}

func (r *caller) unlock() {
	if r != nil && r.inserts.holder == r {
		r.inserts.holder = nil
	}
}

// markMild records that decision i is a refusal of a new key by a full table.
func (r *caller) markMild(i int) {
	if r != nil {
		r.mild |= 1 << i
	}
}
