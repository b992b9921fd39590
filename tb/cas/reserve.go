package cas

import (
	"context"
	"sync/atomic"
	"time"

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

// Hold grants nothing of key's bucket before a time, at which the bucket is empty and refills. It
// returns tb.ErrTableFull if the table has no room for a new key. It ignores the context.
func (l *Limiter[K]) Hold(_ context.Context, key K, until time.Time) error {
	if isNaN(key) {
		return tb.ErrInvalidKey
	}
	return hold(l.placeOf(key), until)
}

// Hold is Limiter.Hold for the bucket.
func (b *Bucket) Hold(until time.Time) { _ = hold(b, until) }

// hold holds the bucket of h. If the time has no monotonic reading, as one of a header, it is as
// far from now as the wall clock says.
func hold[H home](h H, until time.Time) error {
	m, now := h.layoutOf(nil), h.times().time()
	t := h.times().instant(now)
	left := min(uint64(max(0, until.Sub(now))), m.end-t)
	if left == 0 {
		return nil
	}
	_, _, err := spend(h, t, request{until: t + left})
	return err
}

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
