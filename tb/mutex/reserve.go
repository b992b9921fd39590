package mutex

import (
	"context"

	"github.com/seed-181794aa/ratelimit/internal/sleep"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Reserve takes a decimal number of tokens now, and returns when they may be used.
func (l *Limiter[K]) Reserve(_ context.Context, key K, cost float64) (tb.Reservation, error) {
	c, err := l.Charge(key, cost)
	if err != nil {
		return tb.Reservation{}, err
	}
	c.call.debt, c.call.within = oneCapacity, tb.Never
	_, t := l.clock()
	d, err := c.Take(t)
	if err != nil || !d.Allowed {
		return tb.NewReservation(d, 0, nil), err
	}
	return tb.NewReservation(d, c.Delay(), &c), nil
}

// Wait takes a decimal number of tokens and sleeps until they may be used.
func (l *Limiter[K]) Wait(ctx context.Context, key K, cost float64) error {
	c, err := l.Charge(key, cost)
	if err != nil {
		return err
	}
	for c.call.debt = deepest; ; {
		if c.call.within, err = sleep.AtMost(ctx); err != nil {
			return err
		}
		now, t := l.clock()
		d, err := c.Take(t)
		delay := c.call.delay
		switch {
		case err != nil:
			return err
		case !d.Allowed:
			return &tb.WaitError{Wait: delay, Deadline: delay > c.call.within && delay < tb.Never}
		}
		if err := sleep.For(ctx, delay); err != nil {
			c.Cancel()
			return err
		}
		if delay == 0 || !l.isHeld(now+uint64(delay), key) {
			return nil
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
		units -= b.time.above(r.after.time, units)
		b.tokens = min(m.capacity, b.tokens+units)
	}
	l.rank(b)
}

// settle gives back what an estimate was too much, or charges what it was too little. A new bucket
// is in the tier that a call names.
func (l *Limiter[K]) settle(key K, asked int, estimate, actual float64) {
	now := l.read()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buckets[key] != nil {
		asked = 0
	}
	b, m, found := l.find(now, key, asked)
	s := *found
	used := m.roundUp(actual)
	l.settled.add(m, used)
	more := used - m.roundUp(estimate) // which may be above a new capacity
	switch {
	case more < 0 && b != nil:
		m.refund(&s, now, -more)
		l.put(b, &s)
	case more > 0:
		if b == nil {
			b = l.add(now, key)
		}
		if b != nil {
			more -= m.chargeMost(&s, now, more)
			l.put(b, &s)
		}
		l.unpaid.add(m, more)
	}
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
