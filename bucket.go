package ratelimit

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Bucket is one token bucket without a key, to embed in a route or a connection. Use [NewBucket] to
// make one: the zero Bucket has no limit, and a call that needs one panics. All methods are safe
// for concurrent use. A call that takes or reads tokens takes no lock. Costs and refusals are those
// of a [Limiter]. A Bucket takes about 400 bytes, and 640 after the first SetLimit.
type Bucket cas.Bucket

// NewBucket returns a full bucket. The options about keys have no effect. It returns a *ConfigError
// if the limit or an option is out of range.
func NewBucket(limit Limit, opts ...Option) (*Bucket, error) {
	b, err := cas.NewBucket(limit, opts...)
	return (*Bucket)(b), err
}

// Allow takes one token, or nothing. It cannot fail.
func (b *Bucket) Allow() Decision { return (*cas.Bucket)(b).Allow() }

// AllowN takes a cost, or nothing. Its only error is ErrInvalidCost.
func (b *Bucket) AllowN(cost float64) (Decision, error) { return (*cas.Bucket)(b).AllowN(cost) }

// AllowAt is AllowN for a caller that has already read the clock: see [Limiter.AllowAt].
func (b *Bucket) AllowAt(t time.Time, cost float64) (Decision, error) {
	return (*cas.Bucket)(b).AllowAt(t, cost)
}

// Wait takes a cost and sleeps until its tokens may be used: see [Limiter.Wait].
func (b *Bucket) Wait(ctx context.Context, cost float64) error {
	return (*cas.Bucket)(b).Wait(ctx, cost)
}

// Reserve takes a cost now and returns when its tokens may be used: see [Limiter.Reserve]. Its only
// error is ErrInvalidCost.
func (b *Bucket) Reserve(cost float64) (Reservation, error) {
	return (*cas.Bucket)(b).Reserve(cost)
}

// Charge returns a cost for [AllowAll] and [TakeAll]. It takes nothing and allocates nothing. A
// charge that comes with an error is inert: see [Charge].
func (b *Bucket) Charge(cost float64) (BucketCharge, error) { return (*cas.Bucket)(b).Charge(cost) }

// Hold grants nothing before a time, at which the bucket is empty and refills: see [Limiter.Hold].
func (b *Bucket) Hold(until time.Time) { (*cas.Bucket)(b).Hold(until) }

// Peek returns the decision that Allow would return now. It takes nothing.
func (b *Bucket) Peek() Decision { return (*cas.Bucket)(b).Peek() }

// Level returns how full the bucket is now. It takes nothing.
func (b *Bucket) Level() Level { return (*cas.Bucket)(b).Level() }

// AddAt puts a number of tokens, rounded up to units, into the bucket at t, a reading of its clock.
// They pay its debt first, which moves the slots of reservations, and fill it up to its capacity. A
// negative number takes as many tokens, up to a debt of 2³¹ tokens. AddAt does nothing if the
// number is NaN, or if the debt would be paid only after the clock ends.
func (b *Bucket) AddAt(t time.Time, tokens float64) { (*cas.Bucket)(b).AddAt(t, tokens) }

// SetLimit changes the limit. The bucket keeps its tokens, but not more than the new capacity, and
// its debt: see [Limiter.SetLimit]. A bucket that was never used keeps the tokens of its old
// capacity.
func (b *Bucket) SetLimit(limit Limit) error { return (*cas.Bucket)(b).SetLimit(limit) }

// Limit returns the limit of the bucket.
func (b *Bucket) Limit() Limit { return (*cas.Bucket)(b).Limit() }
