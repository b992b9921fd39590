package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Charge is a cost to take from a key's bucket as one part of tb.TakeAll. Only one goroutine
// at a time may use it.
type Charge[K comparable] struct {
	limiter *Limiter[K]
	key     K
	cost    uint64 // units
	checked *cell  // spares Take the look-up
	taken   receipt
}

var _ tb.Charge = (*Charge[string])(nil)

// Charge returns a charge of a decimal number of tokens on key's bucket, rounded up as AllowCost
// does. It returns tb.ErrInvalidCost if cost is zero, negative, NaN or infinite. It takes nothing
// and allocates nothing.
func (l *Limiter[K]) Charge(key K, cost float64) (Charge[K], error) {
	units, err := l.layout.unitsOfCost(cost)
	return Charge[K]{limiter: l, key: key, cost: units}, err
}

// Check implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Check(t time.Time) (tb.Decision, error) {
	l := c.limiter
	d, checked, err := l.peek(l.clock.instant(t), c.key, c.cost)
	c.checked = checked
	return d, err
}

// Level returns how full the bucket is at t, a reading of the limiter's clock. It is
// Limiter.Level for a caller that has a charge.
func (c *Charge[K]) Level(t time.Time) (tb.Level, error) {
	return c.limiter.level(c.limiter.clock.instant(t), c.key)
}

// Take implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Take(t time.Time) (tb.Decision, error) {
	l := c.limiter
	target := c.checked
	if target == nil || isSealed(target.word.Load()) { // it may no longer be the key's cell
		target = l.table.Load(c.key)
	}
	d, taken, err := l.takeSlow(target, l.clock.instant(t), c.key, c.cost)
	c.taken = receipt{}
	if d.Allowed {
		c.taken = taken
	}
	return d, err
}

// Undo implements tb.Charge. It gives nothing back to a bucket that was evicted, or moved to a
// new base, since Take.
func (c *Charge[K]) Undo() {
	if c.taken.cell != nil {
		c.taken.cell.giveBack(&c.limiter.layout, c.taken.word, c.cost)
		c.taken = receipt{}
	}
}
