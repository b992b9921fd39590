package mutex

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/internal/sleep"
	"github.com/seed-181794aa/ratelimit/tb"
)

// receipt is what it takes to undo a grant: the bucket, and its state before and after.
type receipt[K comparable] struct {
	bucket        *bucket[K]
	before, after state
}

// reservation implements tb.Held.
type reservation[K comparable] struct {
	limiter *Limiter[K]
	taken   receipt[K]
	tokens  float64
	ended   atomic.Bool
}

// Reserve takes a decimal number of tokens now, and returns when they may be used. It may put the
// bucket into debt by one capacity.
func (l *Limiter[K]) Reserve(_ context.Context, key K, cost float64) (tb.Reservation, error) {
	if err := checkCost(cost); err != nil {
		return tb.Reservation{}, err
	}
	now := l.read()
	r := &reservation[K]{limiter: l, tokens: cost}
	c := call{tokens: cost, debt: oneCapacity, within: tb.Never}
	err := l.reserve(now, key, &c, &r.taken)
	if err != nil || !c.Allowed {
		return tb.NewReservation(c.Decision, 0, nil), err
	}
	return tb.NewReservation(c.Decision, c.delay, r), nil
}

// Wait takes a decimal number of tokens and sleeps until they may be used.
func (l *Limiter[K]) Wait(ctx context.Context, key K, cost float64) error {
	if err := checkCost(cost); err != nil {
		return err
	}
	within, err := sleep.AtMost(ctx)
	if err != nil {
		return err
	}
	for {
		now := l.read()
		var taken receipt[K]
		c := call{tokens: cost, debt: deepest, within: within}
		err = l.reserve(now, key, &c, &taken)
		switch {
		case err != nil:
			return err
		case !c.Allowed:
			return &tb.WaitError{Wait: c.delay, Deadline: c.delay > within && c.delay < tb.Never}
		}
		if err := sleep.For(ctx, c.delay); err != nil {
			l.cancel(taken, cost)
			return err
		}
		if c.delay == 0 || !l.isHeld(now+uint64(c.delay), key) {
			return nil
		}
		if within, err = sleep.AtMost(ctx); err != nil {
			return err
		}
	}
}

// isHeld reports whether key's bucket is held at now.
func (l *Limiter[K]) isHeld(now uint64, key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _, s := l.find(now, key, 0)
	return s.until > 0
}

func (l *Limiter[K]) reserve(now uint64, key K, c *call, r *receipt[K]) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.spend(now, key, c, r)
	if c.Allowed {
		l.stats.Reservations++
	}
	return err
}

// Cancel implements tb.Held.
func (r *reservation[K]) Cancel() {
	if r.ended.CompareAndSwap(false, true) {
		r.limiter.cancel(r.taken, r.tokens)
	}
}

// Settle implements tb.Held.
func (r *reservation[K]) Settle(actual float64) error {
	if r.ended.CompareAndSwap(false, true) {
		r.limiter.settle(r.taken.bucket.key, 0, r.tokens, actual)
	}
	return nil
}

// cancel gives back a reservation.
func (l *Limiter[K]) cancel(r receipt[K], tokens float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Cancellations++
	l.giveBack(r, tokens)
}

// giveBack undoes a grant, unless the bucket has moved to another limit. If nothing has
// happened since, the bucket is left as it was. In debt to a later reservation it gets nothing
// back. Otherwise it gets the cost less the supply between the grant and the latest grant, because
// it may have been full and have lost that supply. The lock is held.
func (l *Limiter[K]) giveBack(r receipt[K], tokens float64) {
	b := r.bucket
	if l.buckets[b.key] != b || b.moves != r.after.moves {
		return
	}
	m := b.limit
	switch {
	case b.until > 0:
		if b.hold == r.after.hold {
			b.hold = r.before.hold
		}
	case b.state == r.after && b.inDebt:
		b.state = r.before
	case b.inDebt:
		return
	default:
		units := m.unitsOf(tokens)
		if r.after.time.less(b.time) {
			units -= b.time.minus(r.after.time).clamp(units)
		}
		b.tokens = min(m.capacity, b.tokens+units)
	}
	l.rank(b)
}

// settle gives back what an estimate was too much, or charges what it was too little.
func (l *Limiter[K]) settle(key K, asked int, estimate, actual float64) {
	now := l.read()
	l.mu.Lock()
	defer l.mu.Unlock()
	b, m, s := l.find(now, key, asked)
	expected := m.roundUp(estimate) // may be above a new capacity
	used := m.roundUp(actual)
	l.settled.add(m, used)
	if used < expected {
		if b != nil {
			m.refund(&s, now, expected-used)
			s.noteDebt()
			l.put(b, s)
		}
		return
	}
	if used == expected {
		return
	}
	c := call{
		tokens: actual, estimate: estimate, tier: asked,
		debt: oneCapacity, within: tb.Never, rest: true,
	}
	if err := l.spend(now, key, &c, nil); err != nil || !c.Allowed {
		c.charged = 0
	}
	l.unpaid.add(m, used-expected-c.charged)
}

// micros returns units in millionths of a token.
func (l *limit) micros(units int64) int64 { return units * (millionths / l.scale) }

// tokenSum is a number of tokens. One number of millionths could overflow.
type tokenSum struct{ whole, millionths int64 }

func (s *tokenSum) add(l *limit, units int64) {
	s.whole += units / l.scale
	s.millionths += l.micros(units % l.scale)
}

func (s *tokenSum) sum() float64 { return float64(s.whole) + float64(s.millionths)/millionths }

// checkCost returns tb.ErrInvalidCost unless cost is positive and finite, and checkActual unless
// actual is so or 0.
func checkCost(cost float64) error {
	if cost == 0 {
		return tb.ErrInvalidCost
	}
	return checkActual(cost)
}

func checkActual(actual float64) error {
	if math.IsNaN(actual) || math.IsInf(actual, 0) || actual < 0 {
		return tb.ErrInvalidCost
	}
	return nil
}
