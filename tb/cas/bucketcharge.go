package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// BucketCharge is a cost to take from a Bucket as one part of tb.TakeAll. Only one goroutine at a
// time may use it.
type BucketCharge struct {
	bucket *Bucket
	cost   uint64 // units
	taken  receipt
}

var _ tb.Charge = (*BucketCharge)(nil)

// Charge returns a charge of a decimal number of tokens, rounded up as AllowCost does. It returns
// tb.ErrInvalidCost if cost is zero, negative, NaN or infinite. It takes nothing and allocates
// nothing.
func (b *Bucket) Charge(cost float64) (BucketCharge, error) {
	units, err := b.layout.unitsOfCost(cost)
	return BucketCharge{bucket: b, cost: units}, err
}

// Check implements tb.Charge. t is a reading of the bucket's clock.
func (c *BucketCharge) Check(t time.Time) (tb.Decision, error) {
	b := c.bucket
	return b.peek(b.clock.instant(t), c.cost), nil
}

// Take implements tb.Charge. t is a reading of the bucket's clock.
func (c *BucketCharge) Take(t time.Time) (tb.Decision, error) {
	d, taken := c.bucket.takeForUndo(c.bucket.clock.instant(t), c.cost)
	c.taken = receipt{}
	if d.Allowed {
		c.taken = taken
	}
	return d, nil
}

// Undo implements tb.Charge. It gives nothing back to a bucket that has moved to a new base since
// Take.
func (c *BucketCharge) Undo() {
	if c.taken.cell != nil {
		c.taken.cell.giveBack(&c.bucket.layout, c.taken.word, c.cost)
		c.taken = receipt{}
	}
}
