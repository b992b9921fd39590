package interleaving

import (
	"context"
	"iter"
	"reflect"
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

// Has says whether key has a bucket.
func (r reference) Has(key string) bool {
	buckets := reflect.ValueOf(r.TokenBucket).Elem().FieldByName("buckets")
	return buckets.MapIndex(reflect.ValueOf(key)).IsValid()
}

func (r reference) Peek(ctx context.Context, key string) (tb.Decision, error) {
	d, err := r.TokenBucket.Peek(ctx, key)
	if !d.Allowed && !r.Has(key) {
		r.mayBeMilder(own)
	}
	return d, err
}

func (r reference) AllowAt(t time.Time, key string, n int) (tb.Decision, error) {
	if d, ok := r.makeRoom(t, key, n); !ok {
		return d, nil
	}
	defer r.unlock()
	return r.TokenBucket.AllowAt(t, key, n)
}

func (r reference) Allow(_ context.Context, key string) (tb.Decision, error) {
	return r.AllowAt(*r.clock, key, 1)
}

func (r reference) Reset(key string) {
	r.lock()
	defer r.unlock()
	r.TokenBucket.Reset(key)
}

// standIn is a key that has the place of a new one that is not there yet.
const standIn = "stand-in"

// makeRoom is the step of a call on a new key in which others are evicted. Until the key
// is inserted, those who only look may see that they are gone. If the key is refused, it
// returns the answer.
func (r reference) makeRoom(t time.Time, key string, n int) (d tb.Decision, ok bool) {
	if r.caller == nil || n > capacity || r.Has(key) {
		return d, true
	}
	r.lock()
	keys := r.Len()
	if d, _ = r.TokenBucket.AllowAt(t, standIn, n); !d.Allowed {
		r.unlock()
		return d, false
	}
	if r.Len() <= keys { // somebody is gone
		r.fresh = false
		r.pause(inside)
	}
	r.TokenBucket.Reset(standIn)
	return d, true
}

// part is a charge on a bucket of the reference.
type part struct {
	tb.Charge
	key string
	n   int
}

func (r reference) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := r.TokenBucket.Charge(key, cost)
	return &part{&c, key, int(cost)}, err
}

// TakeAll is what tb.TakeAll is documented to be. Each look at a bucket, each grant and
// each undoing is a step.
func (r reference) TakeAll(
	t time.Time, charges []tb.Charge, decisions []tb.Decision,
) (bool, error) {
	allowed := true
	for i, c := range charges {
		other := r.pause(inside)
		decisions[i], _ = c.Check(t)
		if p, ok := c.(*part); ok && !decisions[i].Allowed && p.n <= capacity && !r.Has(p.key) {
			if r.mayBeMilder(i); other {
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
			c.Undo()
		}
	}
	return false, nil
}

func (r reference) take(t time.Time, c tb.Charge) (d tb.Decision) {
	if p, ok := c.(*part); ok {
		if d, ok := r.makeRoom(t, p.key, p.n); !ok {
			return d
		}
		defer r.unlock()
	}
	d, _ = c.Take(t)
	return d
}

// place is where a thread is.
type place int

const (
	outside place = iota // of any call
	inside
	undoing // inside, and about to undo a charge
	blocked // waiting for a lock
)

// caller is a thread that makes its calls on the reference in steps.
type caller struct {
	next  func() (answered, place, bool)
	stop  func()
	yield func(answered, place) bool // nil if it is stopped
	table *held
	clock *time.Time
	fresh bool  // no step of the call is made yet
	other bool  // the next step has its other outcome
	mild  uint8 // of what the call will return
}

// held is the lock of inserts.
type held struct{ by *caller }

func newCaller(l *mutex.TokenBucket, asks []ask, now *time.Time, table *held) *caller {
	r := &caller{table: table, clock: now}
	r.next, r.stop = iter.Pull2(func(yield func(answered, place) bool) {
		r.yield = yield
		for _, c := range asks {
			r.fresh, r.mild = true, 0
			a := c.on(reference{l, r}, now)
			a.mild = r.mild
			if r.yield == nil || !yield(a, outside) {
				return
			}
		}
	})
	return r
}

// step makes the next step. If it was the last of a call, that has answered.
func (r *caller) step(other bool) (answered, place) {
	r.other = other
	a, at, _ := r.next()
	return a, at
}

// pause comes before a step, and waits for its turn. It returns whether the step has its
// other outcome.
func (r *caller) pause(at place) (other bool) {
	if r == nil || r.yield == nil {
		return false
	}
	if !r.fresh && !r.yield(answered{}, at) {
		r.yield = nil
	}
	r.fresh = false
	return r.other
}

// lock takes the lock of inserts. If another thread has it, the step cannot be made.
func (r *caller) lock() {
	switch {
	case r == nil || r.yield == nil:
	case r.table.by == nil:
		r.table.by = r
	case !r.yield(answered{}, blocked):
		r.yield = nil
	}
}

func (r *caller) unlock() {
	if r != nil && r.table.by == r {
		r.table.by = nil
	}
}

// mayBeMilder notes that a refusal is that of a full table.
func (r *caller) mayBeMilder(i int) {
	if r != nil {
		r.mild |= 1 << i
	}
}
