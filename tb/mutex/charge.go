package mutex

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Charge is a cost to take from a key's bucket as one part of tb.TakeAll. Only one goroutine at a
// time may use it.
type Charge[K comparable] struct {
	limiter *Limiter[K]
	key     K
	cost    int64 // units
	taken   *bucket[K]
	time    uint64 // the time of taken, right after Take
}

var _ tb.Charge = (*Charge[string])(nil)

// Charge returns a charge of a decimal number of tokens on key's bucket, rounded up as AllowCost
// does. It returns tb.ErrInvalidCost if cost is zero, negative, NaN or infinite. It takes
// nothing.
func (l *Limiter[K]) Charge(key K, cost float64) (Charge[K], error) {
	units, err := l.limit.unitsOfCost(cost)
	return Charge[K]{limiter: l, key: key, cost: units}, err
}

// Check implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Check(t time.Time) (tb.Decision, error) {
	l := c.limiter
	return l.take(l.instant(t), c.key, c.cost, false)
}

// Level returns how full the charge's bucket is at t, a reading of the limiter's clock.
func (c *Charge[K]) Level(t time.Time) (tb.Level, error) {
	return c.limiter.level(c.limiter.instant(t), c.key)
}

// Take implements tb.Charge. t is a reading of the limiter's clock.
func (c *Charge[K]) Take(t time.Time) (tb.Decision, error) {
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	d, err := l.decide(l.instant(t), c.key, c.cost, true)
	c.taken = nil
	if d.Allowed {
		c.taken = l.buckets[c.key]
		c.time = c.taken.time
	}
	return d, err
}

// Undo implements tb.Charge. It gives back the cost less the supply between Take and the last
// grant, because the bucket may have been full and have lost that supply. It gives nothing back
// to a bucket that was evicted since.
func (c *Charge[K]) Undo() {
	l, b := c.limiter, c.taken
	c.taken = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	if b == nil || l.buckets[b.key] != b {
		return
	}
	since := l.limit.supply(b.time).minus(l.limit.supply(c.time))
	b.tokens += c.cost - since.clamp(c.cost)
	l.rank(b)
}
