package redis

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/sleep"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Reserve takes a decimal number of tokens now, and returns when they may be used: Delay counts
// from the server's decision. It may put the bucket into debt by one capacity. Slots have the order
// in which the server has decided, over all processes. A process that ends keeps its reservations.
//
// Cancel of the reservation is a trip, which takes the timeout at most and gives nothing back if it
// fails. Settle is a trip too, or shares one. If it returns an *Error, the server may have settled
// the cost or not, and it is not tried again: the bucket then keeps the estimate. If the reply of
// Reserve is lost, the bucket keeps the cost.
//
// If the server does not decide, the failure policy does. What it grants has no delay, and is not
// settled.
func (l *Limiter) Reserve(ctx context.Context, key string, cost float64) (tb.Reservation, error) {
	if err := checkCost(cost); err != nil {
		return tb.Reservation{}, err
	}
	m := l.layout.Load()
	it := reservation(m.unitsOfCost(cost), m.capacity, tb.Never)
	r, err := l.decide(ctx, m, key, it)
	if err != nil || !r.Allowed {
		return tb.NewReservation(r.Decision, 0, nil), err
	}
	if r.By == ByPolicy {
		return tb.NewReservation(r.Decision, 0, nil), nil
	}
	l.counts.reservations.Add(1)
	return tb.NewReservation(r.Decision, r.delay, l.hold(m, key, cost, it, r)), nil
}

// Wait takes a number of tokens, and sleeps until they may be used. It returns a *tb.WaitError if
// they cannot be used before the deadline of the context, the error of the context if it ends
// before, and then the tokens are given back as Cancel does. If the server does not decide and the
// failure policy refuses, Wait returns the *Error.
func (l *Limiter) Wait(ctx context.Context, key string, cost float64) error {
	if err := checkCost(cost); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	within := tb.Never
	if deadline, ok := ctx.Deadline(); ok {
		within = time.Until(deadline)
	}
	m := l.layout.Load()
	it := reservation(m.unitsOfCost(cost), deepest, within)
	r, err := l.decide(ctx, m, key, it)
	switch {
	case err != nil:
		return err
	case r.By == ByPolicy && !r.Allowed:
		return r.Failure
	case !r.Allowed:
		return &tb.WaitError{Wait: r.delay, Deadline: r.delay > it.within && r.delay < tb.Never}
	case r.By == ByPolicy:
		return nil
	}
	l.counts.reservations.Add(1)
	if err := sleep.For(ctx, r.delay); err != nil {
		l.hold(m, key, cost, it, r).Cancel()
		return err
	}
	return nil
}

// held implements tb.Held.
type held struct {
	limiter *Limiter
	layout  *layout
	key     string
	tokens  float64
	undo    item
	ended   atomic.Bool
}

// hold returns what holds a reservation.
func (l *Limiter) hold(m *layout, key string, tokens float64, it item, r result) *held {
	usable := r.before.now
	if r.delay < math.MaxInt64-time.Microsecond {
		usable += micros(r.delay) // a whole µs is not after it if its end is not
	}
	return &held{
		limiter: l, layout: m, key: key, tokens: tokens, undo: undoOf(r.before, it.units, usable),
	}
}

// Cancel implements tb.Held.
func (h *held) Cancel() {
	if h.ended.CompareAndSwap(false, true) {
		l := h.limiter
		l.counts.cancellations.Add(1)
		_, err := l.call(context.Background(), h.layout, h.key, h.undo)
		_ = l.counts.failed(err)
	}
}

// Settle implements tb.Held.
func (h *held) Settle(actual float64) error {
	if err := checkActual(actual); err != nil || !h.ended.CompareAndSwap(false, true) {
		return err
	}
	return h.limiter.settle(h.key, h.tokens, actual)
}

// settle gives back what an estimate was too much, or charges what it was too little.
func (l *Limiter) settle(key string, estimate, actual float64) error {
	m := l.layout.Load()
	it := m.settlement(estimate, actual)
	if it.units == 0 {
		return nil
	}
	s, err := l.call(context.Background(), m, key, it)
	if err != nil {
		return l.counts.failed(err)
	}
	if it.kind == kindCharge {
		l.counts.unpaid.Add(m.millionths(it.units - m.apply(&s, &it).units))
	}
	return nil
}

// settlement returns the item that replaces an estimate by the actual cost. Both may be above the
// capacity.
func (m *layout) settlement(estimate, actual float64) item {
	expected, used := m.roundUp(estimate), m.roundUp(actual)
	if used > expected {
		return item{kind: kindCharge, units: used - expected}
	}
	return item{kind: kindGiveBack, units: expected - used}
}
