package mutex

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/sleep"
	"github.com/seed-181794aa/ratelimit/tb"
)

// outcome is the result of a call on a key: the bucket that was charged, and its state before and
// after.
type outcome[K comparable] struct {
	tb.Decision
	delay         time.Duration
	charged       int64
	bucket        *bucket[K] // nil if the call was refused
	before, after state
}

// reservation implements tb.Held.
type reservation[K comparable] struct {
	limiter *Limiter[K]
	taken   outcome[K]
	tokens  float64
	usable  uint64 // instant
	ended   atomic.Bool
}

// Reserve takes a decimal number of tokens now, and returns when they may be used. It may put the
// bucket into debt by one capacity.
func (l *Limiter[K]) Reserve(_ context.Context, key K, cost float64) (tb.Reservation, error) {
	if err := checkCost(cost); err != nil {
		return tb.Reservation{}, err
	}
	now := l.read()
	o, err := l.reserve(now, key, &terms{tokens: cost, debt: oneCapacity, within: tb.Never})
	if err != nil || !o.Allowed {
		return tb.NewReservation(o.Decision, 0, nil), err
	}
	r := &reservation[K]{limiter: l, taken: o, tokens: cost, usable: now + uint64(o.delay)}
	return tb.NewReservation(o.Decision, o.delay, r), nil
}

// Wait takes n tokens and sleeps until they may be used.
func (l *Limiter[K]) Wait(ctx context.Context, key K, n int) error {
	if n <= 0 {
		return tb.ErrInvalidCost
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	within := tb.Never
	if deadline, ok := ctx.Deadline(); ok {
		within = time.Until(deadline)
	}
	now := l.read()
	o, err := l.reserve(now, key, &terms{tokens: float64(n), debt: deepest, within: within})
	switch {
	case err != nil:
		return err
	case !o.Allowed:
		return &tb.WaitError{Wait: o.delay, Deadline: o.delay > within && o.delay < tb.Never}
	}
	if err := sleep.For(ctx, o.delay); err != nil {
		l.cancel(o, float64(n), now+uint64(o.delay))
		return err
	}
	return nil
}

func (l *Limiter[K]) reserve(now uint64, key K, want *terms) (outcome[K], error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, err := l.spend(now, key, want)
	if o.Allowed {
		l.stats.Reservations++
	}
	return o, err
}

// Cancel implements tb.Held.
func (r *reservation[K]) Cancel() {
	if r.ended.CompareAndSwap(false, true) {
		r.limiter.cancel(r.taken, r.tokens, r.usable)
	}
}

// Settle implements tb.Held.
func (r *reservation[K]) Settle(actual float64) error {
	if r.ended.CompareAndSwap(false, true) {
		r.limiter.settle(r.taken.bucket.key, r.tokens, actual)
	}
	return nil
}

// cancel gives back a reservation that may be used at the instant usable, unless that has passed.
func (l *Limiter[K]) cancel(o outcome[K], tokens float64, usable uint64) {
	now := l.read()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Cancellations++
	if now <= usable {
		l.giveBack(o, tokens)
	}
}

// giveBack undoes a grant, unless the bucket has moved to another era or tier. If nothing has
// happened since, the bucket is left as it was. In debt to a later reservation it gets nothing
// back. Otherwise it gets the cost less the supply between the grant and the latest grant, because
// it may have been full and have lost that supply. The lock is held.
func (l *Limiter[K]) giveBack(o outcome[K], tokens float64) {
	b := o.bucket
	if l.buckets[b.key] != b || b.moves != o.after.moves {
		return
	}
	m := &l.tiers[b.tier].eras[b.era]
	switch {
	case b.state == o.after && b.inDebt:
		b.state = o.before
	case b.inDebt:
		return
	default:
		units := m.unitsOfCost(tokens)
		if o.after.time.less(b.time) {
			units -= b.time.minus(o.after.time).clamp(units)
		}
		b.tokens = min(m.capacity, b.tokens+units)
	}
	l.rank(b)
}

// settle gives back what an estimate was too much, or charges what it was too little.
func (l *Limiter[K]) settle(key K, estimate, actual float64) {
	now := l.read()
	l.mu.Lock()
	defer l.mu.Unlock()
	tier := l.tier(key, 0)
	m := tier.limit()
	expected := m.roundUp(estimate) // may be above a new capacity
	used := m.roundUp(actual)
	l.settled.add(m, used)
	if used < expected {
		if b, ok := l.buckets[key]; ok {
			s := l.seen(b, tier, now)
			m.refund(s, now, expected-used)
			b.state = *s
			l.rank(b)
		}
		return
	}
	if used == expected {
		return
	}
	want := terms{
		tokens: actual, estimate: estimate, debt: oneCapacity, within: tb.Never, rest: true,
	}
	o, err := l.spend(now, key, &want)
	if err != nil || !o.Allowed {
		o.charged = 0
	}
	l.unpaid.add(m, used-expected-o.charged)
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
