package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Charge is a cost to take from a key's bucket as one part of tb.TakeAll. It is for
// one caller at a time.
type Charge[K comparable] struct {
	limiter *Limiter[K]
	key     K
	cost    uint64 // units
	checked *bucket
	taken   place // no bucket if there is nothing to undo
}

var _ tb.Charge = (*Charge[string])(nil)

// Charge returns a charge of a decimal number of tokens on key's bucket, rounded up
// as AllowCost does. It returns tb.ErrInvalidCost if cost is not positive, NaN or
// infinite. It takes nothing and allocates nothing.
func (l *Limiter[K]) Charge(key K, cost float64) (Charge[K], error) {
	units, err := l.meter.decimal(cost)
	return Charge[K]{limiter: l, key: key, cost: units}, err
}

// Check implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Check(t time.Time) (tb.Decision, error) {
	l := c.limiter
	d, b, err := l.peek(l.clock.instant(t), c.key, c.cost)
	c.checked = b
	return d, err
}

// Level returns how full the charge's bucket is at t, a reading of the limiter's clock. It
// is Limiter.Level for a caller that has a charge.
func (c *Charge[K]) Level(t time.Time) (tb.Level, error) {
	return c.limiter.level(c.limiter.clock.instant(t), c.key)
}

// Take implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Take(t time.Time) (tb.Decision, error) {
	l := c.limiter
	b := c.checked
	if b == nil || isSealed(b.word.Load()) { // it may no longer be the key's
		b = l.table.Load(c.key)
	}
	d, at, err := l.settle(b, l.clock.instant(t), c.key, c.cost)
	c.taken = place{}
	if d.Allowed {
		c.taken = at
	}
	return d, err
}

// Undo implements tb.Charge. Nothing is given back to a bucket that has left the table,
// or moved to a new base since.
func (c *Charge[K]) Undo() {
	if c.taken.bucket != nil {
		c.taken.bucket.giveBack(&c.limiter.meter, c.taken.word, c.cost)
		c.taken = place{}
	}
}
