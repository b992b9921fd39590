package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Charge is a cost to take from a key's bucket as one part of tb.TakeAll. Its address is a
// tb.Charge, an interface that package ratelimit calls Charge; there this type is KeyCharge. Only
// one goroutine at a time may use it.
type Charge[K comparable] struct {
	place place[K]
	part
	checked *cell // that Peek has found, so that Take need not look it up
}

var _ tb.Charge = (*Charge[string])(nil)

// Charge returns a charge on key's bucket. It takes nothing and allocates nothing.
func (l *Limiter[K]) Charge(key K, cost float64) (Charge[K], error) {
	c := Charge[K]{place: l.placeOf(key), part: part{tokens: cost}}
	return c, checkCost(cost)
}

// ChargeIn is Charge in a tier. The next Take, or a TakeAll that refuses the charge, moves the key
// to that tier. It returns a *tb.ConfigError if the tier does not exist.
func (l *Limiter[K]) ChargeIn(tier int, key K, cost float64) (Charge[K], error) {
	if err := l.checkTier(tier); err != nil {
		return Charge[K]{}, err
	}
	c, err := l.Charge(key, cost)
	c.place.tier, c.place.enters = tier, true
	return c, err
}

// Peek implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Peek(t time.Time) (d tb.Decision, err error) {
	at := c.place.clock.instant(t)
	c.checked = c.place.load()
	if c.checked != nil && c.within == 0 {
		m := c.place.layoutOf(c.checked)
		if d, ok := c.checked.peek(m, at, m.unitsOf(c.tokens)); ok {
			return d, nil
		}
	}
	d, c.checked, err = peek(c.place, at, c.request())
	return d, err
}

// Level returns how full the bucket is at t, a reading of the limiter's clock. It is
// Limiter.Level for a caller that has a charge.
func (c *Charge[K]) Level(t time.Time) (tb.Level, error) {
	return level(c.place, c.place.clock.instant(t))
}

// Take implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Take(t time.Time) (tb.Decision, error) {
	target := c.checked
	if target == nil || isSealed(target.word.Load()) { // it may no longer be the key's cell
		target = c.place.load()
	}
	at := c.place.clock.instant(t)
	if d, ok := c.takeFast(target, c.place.layoutOf(target), at); ok {
		if d.Allowed {
			c.countTaken(c.place.shared())
		}
		return d, nil
	}
	return takePart(c.place, &c.part, target, at)
}

// Enter moves the key to the tier that ChargeIn has named, unless it is in that tier or not in the
// table. It takes nothing. tb.TakeAll calls it if Peek has refused the charge. t is a reading of
// the limiter's clock.
func (c *Charge[K]) Enter(t time.Time) {
	if c.place.enters {
		c.place.enter(c.place.clock.instant(t))
	}
}

// Cancel implements tb.Charge. It gives nothing back to a bucket that was evicted, or moved to a
// new base, since Take.
func (c *Charge[K]) Cancel() { c.cancel(c.place.shared()) }

// Settle replaces the cost of the last Take by the actual cost, as tb.Reservation.Settle does. It
// does nothing if that Take was refused, cancelled or settled. The key stays in its tier. If it has
// left the table since, what is charged makes a bucket in the tier that
// ChargeIn has named, or in tier 0.
func (c *Charge[K]) Settle(actual float64) error {
	p := c.place
	p.enters = false // the key may have changed its tier since
	return settlePart(p, &c.part, actual)
}
