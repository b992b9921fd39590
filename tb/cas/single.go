package cas

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Bucket is one token bucket without a table, to embed in a route, a connection or
// whatever else is limited on its own. Use NewBucket to make one; all methods are safe
// for concurrent use.
type Bucket struct {
	meter meter
	clock clock
	state atomic.Pointer[bucket]
}

// NewBucket returns a full bucket. Of the options, those about keys have no effect. It
// returns a *tb.ConfigError if the limit or an option is out of range.
func NewBucket(limit tb.Limit, opts ...tb.Option) (*Bucket, error) {
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	s, err := tb.Apply(opts...)
	if err != nil {
		return nil, err
	}
	b := &Bucket{meter: newMeter(limit), clock: newClock(s.Now, limit)}
	return b, nil
}

// Allow takes one token. The context is not looked at.
func (b *Bucket) Allow(context.Context) (tb.Decision, error) {
	return b.take(b.clock.read(), b.meter.scale), nil
}

// AllowN takes n tokens, or none. It returns tb.ErrInvalidCost if n is not positive.
func (b *Bucket) AllowN(_ context.Context, n int) (tb.Decision, error) {
	cost, err := b.meter.whole(n)
	if err != nil {
		return tb.Decision{}, err
	}
	return b.take(b.clock.read(), cost), nil
}

// AllowCost takes a decimal number of tokens, or none; see Limiter.AllowCost.
func (b *Bucket) AllowCost(_ context.Context, cost float64) (tb.Decision, error) {
	units, err := b.meter.decimal(cost)
	if err != nil {
		return tb.Decision{}, err
	}
	return b.take(b.clock.read(), units), nil
}

// AllowAt is AllowN for a caller that has read the clock already.
func (b *Bucket) AllowAt(t time.Time, n int) (tb.Decision, error) {
	cost, err := b.meter.whole(n)
	if err != nil {
		return tb.Decision{}, err
	}
	return b.take(b.clock.instant(t), cost), nil
}

// Peek returns the decision that Allow would return now, and takes nothing.
func (b *Bucket) Peek(context.Context) (tb.Decision, error) {
	t := b.clock.read()
	if state := b.state.Load(); state != nil {
		return state.peek(&b.meter, state.word.Load(), t, b.meter.scale), nil
	}
	return b.meter.stranger(b.meter.scale), nil
}

// Level returns how full the bucket is now, and takes nothing.
func (b *Bucket) Level(context.Context) (tb.Level, error) {
	t := b.clock.read()
	if state := b.state.Load(); state != nil {
		return state.level(&b.meter, state.word.Load(), t), nil
	}
	return tb.Level{Tokens: float64(b.meter.tokens)}, nil
}

// take decides on a call of the given cost in units at the instant t. The state is
// made by the first grant, which gives it its time, and replaced by the grant for which
// its delta has run out.
func (b *Bucket) take(t, cost uint64) tb.Decision {
	for {
		old := b.state.Load()
		if old == nil {
			if cost > b.meter.capacity || b.begin(t, cost) {
				return b.meter.stranger(cost)
			}
			continue
		}
		d, _, state := old.take(&b.meter, t, cost)
		if state == decided {
			return d
		}
		base, word, d := old.successor(&b.meter, t, cost)
		if b.state.CompareAndSwap(old, new(bucket).set(base, word)) {
			return d
		}
	}
}

// begin makes the first state, which was charged cost at t, unless there is one.
func (b *Bucket) begin(t, cost uint64) bool {
	blocks, rest := b.meter.split(b.meter.at(t))
	return b.state.CompareAndSwap(nil, new(bucket).set(blocks, b.meter.pack(rest, cost)))
}
