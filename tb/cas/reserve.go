package cas

import (
	"context"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/internal/check"
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
	part[H]
	ended atomic.Bool
}

func reserve[H home](h H, cost float64) (tb.Reservation, error) {
	if err := check.Cost(cost); err != nil {
		return tb.Reservation{}, err
	}
	p := part[H]{home: h, request: request{kind: reserves, tokens: cost, within: tb.Never}}
	t := h.times().read()
	d, err := p.take(h.load(), t)
	if !d.Allowed {
		return tb.NewReservation(d, 0, nil), err
	}
	h.shared().reservations.Add(1)
	return tb.NewReservation(d, p.delay, &reservation[H]{part: p}), nil
}

func wait[H home](ctx context.Context, h H, cost float64) error {
	if err := check.Cost(cost); err != nil {
		return err
	}
	p := part[H]{home: h, request: request{tokens: cost}}
	for {
		var err error
		if p.within, err = sleep.AtMost(ctx); err != nil {
			return err
		}
		t := h.times().read()
		d, err := p.take(h.load(), t)
		switch {
		case err != nil:
			return err
		case !d.Allowed:
			return &tb.WaitError{Wait: p.delay, Deadline: p.delay > p.within && p.delay < tb.Never}
		}
		if h.shared().reservations.Add(1); p.delay == 0 {
			return nil
		}
		if err := sleep.For(ctx, p.delay); err != nil {
			p.Cancel()
			return err
		}
		// A hold that came meanwhile has taken the tokens with the rest of the bucket.
		if c, _, has, _, err := look(h, t+uint64(p.delay)); c == nil || has.until == 0 {
			return err
		}
	}
}

// Cancel implements tb.Held.
func (r *reservation[H]) Cancel() {
	if r.ended.CompareAndSwap(false, true) {
		r.part.Cancel()
	}
}

// Settle implements tb.Held.
func (r *reservation[H]) Settle(actual float64) error {
	if r.ended.CompareAndSwap(false, true) {
		return r.part.Settle(actual)
	}
	return nil
}
