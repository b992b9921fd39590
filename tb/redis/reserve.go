package redis

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/check"
	"github.com/seed-181794aa/ratelimit/internal/sleep"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Reserve takes a decimal number of tokens now, and returns when they may be used: Delay counts
// from the server's decision. It may put the bucket into debt by one capacity. Slots have the order
// in which the server has decided, over all processes. A process that ends keeps its reservations.
//
// Cancel and Settle of the reservation are a round trip each, or share one. If they fail, the
// server may have given the tokens back, or settled the cost, or not, and they are not tried again.
// If the reply of Reserve is lost, the bucket keeps the cost.
//
// If the server does not decide, the failure policy does. What it grants has no delay, and is not
// settled.
func (l *Limiter) Reserve(ctx context.Context, key string, cost float64) (tb.Reservation, error) {
	c, err := l.charge(key, cost)
	if err != nil {
		return tb.Reservation{}, err
	}
	c.item = reservation(c.item.units, c.layout.capacity, tb.Never)
	d, err := c.take(ctx)
	if !c.taken.Load() {
		return tb.NewReservation(d, 0, nil), err
	}
	return tb.NewReservation(d, c.last.delay, c), nil
}

// Wait takes a decimal number of tokens, and sleeps until they may be used. Slots have the order in
// which the server has decided. Wait takes nothing and returns an error at once in three cases:
//
//   - The cost is invalid. The error is tb.ErrInvalidCost.
//   - The context has ended, or its deadline has passed. The error is the error of the context.
//   - The deadline of the context is too near, the cost is above the capacity, or the debt of the
//     bucket would be above 2³¹ units. The error is a *tb.WaitError.
//
// If the context ends while Wait sleeps, Wait gives the tokens back as Cancel does, and returns the
// error of the context. After it has slept, it asks the server whether a hold that came meanwhile
// has taken the tokens. Then it takes the cost once more, behind the hold. If the server does not
// decide, the failure policy does: Wait returns nil at once if it grants, and otherwise the *Error.
// The server may have taken the tokens then.
func (l *Limiter) Wait(ctx context.Context, key string, cost float64) error {
	if err := check.Cost(cost); err != nil {
		return err
	}
	within, err := sleep.AtMost(ctx)
	if err != nil {
		return err
	}
	for {
		c, _ := l.charge(key, cost)
		c.item = reservation(c.item.units, deepest, within)
		_, err := c.take(ctx)
		switch r := &c.last; {
		case err != nil:
			return err
		case r.By == ByPolicy && !r.Allowed:
			return r.Failure
		case !r.Allowed:
			late := r.delay > within.Truncate(time.Microsecond)
			return &tb.WaitError{Wait: r.delay, Deadline: late && r.delay < tb.Never}
		case r.By == ByPolicy || r.delay == 0:
			return nil
		}
		if err := sleep.For(ctx, c.last.delay); err != nil {
			c.Cancel()
			return err
		}
		if !l.lost(ctx, c) {
			return nil
		}
		if within, err = sleep.AtMost(ctx); err != nil {
			return err
		}
	}
}

// lost reports whether the bucket is held beyond the slot of a reservation, which has none then. If
// the server does not answer, the tokens count as there.
func (l *Limiter) lost(ctx context.Context, c *Charge) bool {
	s, err := l.look(ctx, c.layout, c.key, item{kind: kindLook})
	slot := c.last.before.now + uint64(c.last.delay/time.Microsecond)
	return err == nil && s.held && s.time > slot
}
