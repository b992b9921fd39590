package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// BucketCharge is a cost to take from a Bucket as one part of tb.TakeAll. Its address is a
// tb.Charge. Only one goroutine at a time may use it.
type BucketCharge struct {
	bucket *Bucket
	part
}

var _ tb.Charge = (*BucketCharge)(nil)

// Charge returns a charge on the bucket. It takes nothing and allocates nothing.
func (b *Bucket) Charge(cost float64) (BucketCharge, error) {
	return BucketCharge{bucket: b, part: part{tokens: cost}}, checkCost(cost)
}

// Peek implements tb.Charge. t is a reading of the bucket's clock.
func (c *BucketCharge) Peek(t time.Time) (tb.Decision, error) {
	b := c.bucket
	at, target := b.clock.instant(t), b.load()
	if target != nil && c.within == 0 {
		m := b.layout()
		if d, ok := target.peek(m, at, m.unitsOf(c.tokens)); ok {
			return d, nil
		}
	}
	d, _, err := peek(b, at, c.request())
	return d, err
}

// Level returns how full the bucket is at t, a reading of the bucket's clock. Its error is always
// nil: it has one, as Charge.Level has.
func (c *BucketCharge) Level(t time.Time) (tb.Level, error) { return c.bucket.LevelAt(t), nil }

// Take implements tb.Charge. t is a reading of the bucket's clock.
func (c *BucketCharge) Take(t time.Time) (tb.Decision, error) {
	b := c.bucket
	at, target := b.clock.instant(t), b.load()
	if d, ok := c.takeFast(target, b.layout(), at); ok { // a Bucket counts nothing
		return d, nil
	}
	return takePart(b, &c.part, target, at)
}

// Cancel implements tb.Charge. It gives nothing back to a bucket that has moved to a new base since
// Take.
func (c *BucketCharge) Cancel() { c.cancel(&c.bucket.limits) }

// Settle replaces the cost of the last Take by the actual cost; see Charge.Settle.
func (c *BucketCharge) Settle(actual float64) error { return settlePart(c.bucket, &c.part, actual) }
