package cas

import (
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// BucketCharge is a cost to take from a Bucket as one part of tb.TakeAll. Only one goroutine at a
// time may use it.
type BucketCharge struct {
	bucket *Bucket
	want   terms
	taken  outcome
}

var _ tb.Charge = (*BucketCharge)(nil)

// Charge returns a charge of a decimal number of tokens, rounded up as AllowCost does. It returns
// tb.ErrInvalidCost if cost is zero, negative, NaN or infinite. It takes nothing and allocates
// nothing.
func (b *Bucket) Charge(cost float64) (BucketCharge, error) {
	c := BucketCharge{bucket: b, want: terms{amount: amount{tokens: cost}}}
	if !(cost > 0) || math.IsInf(cost, 1) {
		return c, tb.ErrInvalidCost
	}
	return c, nil
}

// MayWait lets the charge put the bucket into debt; see Charge.MayWait.
func (c *BucketCharge) MayWait(within time.Duration) {
	c.want.debt, c.want.within = oneCapacity, within
	if within <= 0 {
		c.want.debt = nil
	}
}

// Delay returns the time from the reading of the last Take until its tokens may be used. It is 0
// if that Take was refused.
func (c *BucketCharge) Delay() time.Duration { return c.taken.delay }

// Check implements tb.Charge. t is a reading of the bucket's clock.
func (c *BucketCharge) Check(t time.Time) (tb.Decision, error) {
	b := c.bucket
	return b.check(b.clock.instant(t), &c.want), nil
}

// Take implements tb.Charge. t is a reading of the bucket's clock.
func (c *BucketCharge) Take(t time.Time) (tb.Decision, error) {
	b := c.bucket
	if cell := b.load(); cell != nil {
		if d, r, ok := cell.quickTake(b.layout(), b.clock.instant(t), &c.want); ok {
			c.taken = outcome{receipt: r}
			return d, nil
		}
	}
	o, err := spend(b, b.load(), b.clock.instant(t), c.want)
	c.taken = outcome{}
	if o.Allowed {
		c.taken = o
		if c.want.debt != nil {
			b.limits.reservations.Add(1)
		}
	}
	return o.Decision, err
}

// Undo implements tb.Charge. It gives nothing back to a bucket that has moved to a new base since
// Take.
func (c *BucketCharge) Undo() {
	if c.taken.receipt.cell == nil {
		return
	}
	if c.want.debt != nil {
		c.bucket.limits.cancellations.Add(1)
	}
	giveBack(c.bucket, c.taken.receipt, c.want.amount)
	c.taken = outcome{}
}

// Settle replaces the cost of the last Take by the actual cost; see Charge.Settle.
func (c *BucketCharge) Settle(actual float64) error {
	if err := checkActual(actual); err != nil {
		return err
	}
	if c.taken.receipt.cell != nil {
		settle(c.bucket, c.want.tokens, actual)
		c.taken = outcome{}
	}
	return nil
}

// check returns what spend would decide.
func (b *Bucket) check(t uint64, want *terms) tb.Decision {
	c, m := b.load(), b.layout()
	if c == nil {
		return m.fullDecision(want.in(m))
	}
	if d, ok := c.quickCheck(m, t, want); ok {
		return d
	}
	base, word := b.limits.view(m, c.base, c.word.Load(), t)
	return m.check(base, word, t, want)
}
