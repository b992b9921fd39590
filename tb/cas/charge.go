package cas

import (
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Charge is a cost to take from a key's bucket as one part of tb.TakeAll. Only one goroutine
// at a time may use it.
type Charge[K comparable] struct {
	place   place[K]
	want    terms
	checked *cell // spares Take the look-up
	taken   outcome
}

var _ tb.Charge = (*Charge[string])(nil)

// Charge returns a charge of a decimal number of tokens on key's bucket, rounded up as AllowCost
// does. It returns tb.ErrInvalidCost if cost is zero, negative, NaN or infinite. It takes nothing
// and allocates nothing.
func (l *Limiter[K]) Charge(key K, cost float64) (Charge[K], error) {
	c := Charge[K]{place: place[K]{l, key}, want: terms{amount: amount{tokens: cost}}}
	if !(cost > 0) || math.IsInf(cost, 1) {
		return c, tb.ErrInvalidCost
	}
	return c, nil
}

// MayWait lets the charge put the bucket into debt, up to one capacity, if the tokens can be used
// within the given time from the reading of Take. The charge is then granted where it would be
// refused, and Delay returns the wait. With 0, the charge does not wait.
func (c *Charge[K]) MayWait(within time.Duration) {
	c.want.debt, c.want.within = oneCapacity, within
	if within <= 0 {
		c.want.debt = nil
	}
}

// Delay returns the time from the reading of the last Take until its tokens may be used. It is 0
// if that Take was refused.
func (c *Charge[K]) Delay() time.Duration { return c.taken.delay }

// Check implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Check(t time.Time) (tb.Decision, error) {
	l := c.place.Limiter
	d, checked, err := l.check(l.clock.instant(t), c.place.key, &c.want)
	c.checked = checked
	return d, err
}

// Level returns how full the bucket is at t, a reading of the limiter's clock. It is
// Limiter.Level for a caller that has a charge.
func (c *Charge[K]) Level(t time.Time) (tb.Level, error) {
	l := c.place.Limiter
	return l.level(l.clock.instant(t), c.place.key)
}

// Take implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Take(t time.Time) (tb.Decision, error) {
	target := c.checked
	if target == nil || isSealed(target.word.Load()) { // it may no longer be the key's cell
		target = c.place.load()
	}
	o, err := spend(c.place, target, c.place.clock.instant(t), c.want)
	c.taken = outcome{}
	if o.Allowed {
		c.taken = o
		if c.want.debt != nil {
			c.place.limits.reservations.Add(1)
		}
	}
	return o.Decision, err
}

// Undo implements tb.Charge. It gives nothing back to a bucket that was evicted, or moved to a
// new base, since Take.
func (c *Charge[K]) Undo() {
	if c.taken.receipt.cell == nil {
		return
	}
	if c.want.debt != nil {
		c.place.limits.cancellations.Add(1)
	}
	giveBack(c.place, c.taken.receipt, c.want.amount)
	c.taken = outcome{}
}

// Settle replaces the cost of the last Take by the actual cost, as tb.Reservation.Settle does. It
// does nothing if that Take was refused, undone or settled.
func (c *Charge[K]) Settle(actual float64) error {
	if err := checkActual(actual); err != nil {
		return err
	}
	if c.taken.receipt.cell != nil {
		settle(c.place, c.want.tokens, actual)
		c.taken = outcome{}
	}
	return nil
}
