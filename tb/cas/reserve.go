package cas

import (
	"context"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/internal/sleep"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Reserve takes tokens now, into a debt of one capacity at most, and returns when they may be used.
func (l *Limiter[K]) Reserve(_ context.Context, key K, cost float64) (tb.Reservation, error) {
	return reserve(l.placeOf(key), cost)
}

// Wait takes tokens and sleeps until they may be used. If it cannot wait, it takes nothing and
// returns a *tb.WaitError.
func (l *Limiter[K]) Wait(ctx context.Context, key K, cost float64) error {
	return wait(ctx, l.placeOf(key), cost)
}

// Reserve is Limiter.Reserve for the bucket.
func (b *Bucket) Reserve(cost float64) (tb.Reservation, error) {
	return reserve(b, cost)
}

// Wait is Limiter.Wait for the bucket.
func (b *Bucket) Wait(ctx context.Context, cost float64) error { return wait(ctx, b, cost) }

// reservation implements tb.Held.
type reservation[H home] struct {
	home    H
	tokens  float64
	receipt receipt
	ended   atomic.Bool
}

func reserve[H home](h H, cost float64) (tb.Reservation, error) {
	if err := checkCost(cost); err != nil {
		return tb.Reservation{}, err
	}
	t := h.now()
	want := request{kind: reserves, tokens: cost}
	o, err := spend(h, h.load(), t, want)
	if err != nil || !o.Allowed {
		return tb.NewReservation(o.Decision, 0, nil), err
	}
	h.shared().reservations.Add(1)
	r := &reservation[H]{home: h, tokens: cost, receipt: o.receipt}
	return tb.NewReservation(o.Decision, o.delay, r), nil
}

func wait[H home](ctx context.Context, h H, cost float64) error {
	if err := checkCost(cost); err != nil {
		return err
	}
	within, err := sleep.AtMost(ctx)
	if err != nil {
		return err
	}
	for {
		p := part{tokens: cost, within: within}
		t := h.now()
		c := h.load()
		if d, ok := p.takeFast(c, h.layoutOf(c), t); ok && d.Allowed {
			h.shared().reservations.Add(1)
			return nil
		}
		o, err := takePart(h, &p, c, t)
		switch {
		case err != nil:
			return err
		case !o.Allowed:
			return &tb.WaitError{Wait: o.delay, Deadline: o.delay > within && o.delay < tb.Never}
		}
		h.shared().reservations.Add(1)
		if err := sleep.For(ctx, o.delay); err != nil {
			p.cancel(h.shared())
			return err
		}
		if o.delay == 0 {
			return nil
		}
		// A hold that came meanwhile has taken the tokens with the rest of the bucket.
		if c, _, has, _, err := look(h, t+uint64(o.delay)); c == nil || has.until == 0 {
			return err
		}
		if within, err = sleep.AtMost(ctx); err != nil {
			return err
		}
	}
}

// Cancel implements tb.Held.
func (r *reservation[H]) Cancel() {
	if r.ended.CompareAndSwap(false, true) {
		r.home.shared().cancel(r.receipt, r.tokens)
	}
}

// Settle implements tb.Held.
func (r *reservation[H]) Settle(actual float64) error {
	if r.ended.CompareAndSwap(false, true) {
		settle(r.home, r.tokens, actual)
	}
	return nil
}

// cancel gives back a reservation.
func (s *limits) cancel(r receipt, tokens float64) {
	s.cancellations.Add(1)
	s.giveBack(r, tokens)
}
