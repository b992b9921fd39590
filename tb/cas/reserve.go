package cas

import (
	"context"
	"sync/atomic"
	"time"

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
	want := request{tokens: cost, within: tb.Never}
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
	if err := ctx.Err(); err != nil {
		return err
	}
	within := tb.Never
	if deadline, ok := ctx.Deadline(); ok {
		within = time.Until(deadline)
	}
	want := request{tokens: cost, within: within, deep: true}
	t := h.now()
	c := h.load()
	if m := h.layoutOf(c); c != nil {
		if d, _, _, ok := c.take(m, t, m.unitsOf(cost)); ok && d.Allowed {
			h.shared().reservations.Add(1)
			return nil
		}
	}
	o, err := spend(h, c, t, want)
	switch {
	case err != nil:
		return err
	case !o.Allowed:
		return &tb.WaitError{Wait: o.delay, Deadline: o.delay > within && o.delay < tb.Never}
	}
	h.shared().reservations.Add(1)
	if err := sleep.For(ctx, o.delay); err != nil {
		h.shared().cancel(o.receipt, cost)
		return err
	}
	return nil
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

// giveBack undoes a grant of a number of tokens. If the word is still the word of the grant, the
// bucket is left as it was before. If a later reservation has put the bucket into debt, giveBack
// does nothing, because the slot of that reservation does not change. Otherwise it gives back the
// cost less the units that were supplied from that grant to the bucket's latest grant, but not less
// than 0. Without the undone grant, the bucket may have been full and have lost that supply. So the
// bucket is never fuller than without the grant. DESIGN.md §3 has the proof. A sealed cell gets
// nothing back.
func (s *limits) giveBack(r receipt, tokens float64) {
	m := s.owner(r.cell)
	if m == nil {
		return
	}
	then, deficitThen := m.unpack(r.after)
	if deficitThen > m.capacity {
		then++ // to the slot
	}
	for {
		word := r.cell.word.Load()
		if isSealed(word) {
			return
		}
		delta, deficit := m.unpack(word)
		next := r.before
		switch {
		case word == r.after && deficitThen > m.capacity:
		case deficit > m.capacity:
			return
		default:
			units := m.unitsOf(tokens)
			units -= min(units, delta-min(delta, then))
			next = m.pack(delta, deficit-min(deficit, units))
		}
		if r.cell.word.CompareAndSwap(word, next) {
			return
		}
	}
}
