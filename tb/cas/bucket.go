package cas

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Bucket is one token bucket without a key, to embed in a route or a connection. Use NewBucket to
// make one. All methods are safe for concurrent use. Their only error is tb.ErrInvalidCost, so
// Allow, Peek and Level never fail.
type Bucket struct {
	layout layout
	clock  clock
	cell   atomic.Pointer[cell] // nil before the first grant
}

// NewBucket returns a full bucket. The options about keys have no effect. It returns a
// *tb.ConfigError if the limit or an option is out of range.
func NewBucket(limit tb.Limit, opts ...tb.Option) (*Bucket, error) {
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	s, err := tb.Apply(opts...)
	if err != nil {
		return nil, err
	}
	b := &Bucket{layout: newLayout(limit), clock: newClock(s.Now, limit)}
	return b, nil
}

// Allow takes one token. It ignores the context.
func (b *Bucket) Allow(context.Context) (tb.Decision, error) {
	return b.take(b.clock.read(), b.layout.scale), nil
}

// AllowN takes n tokens, or none. It returns tb.ErrInvalidCost if n is not positive.
func (b *Bucket) AllowN(_ context.Context, n int) (tb.Decision, error) {
	cost, err := b.layout.unitsOf(n)
	if err != nil {
		return tb.Decision{}, err
	}
	return b.take(b.clock.read(), cost), nil
}

// AllowCost takes a decimal number of tokens, or none; see Limiter.AllowCost.
func (b *Bucket) AllowCost(_ context.Context, cost float64) (tb.Decision, error) {
	units, err := b.layout.unitsOfCost(cost)
	if err != nil {
		return tb.Decision{}, err
	}
	return b.take(b.clock.read(), units), nil
}

// AllowAt is AllowN for a caller that has already read the clock; see Limiter.AllowAt.
func (b *Bucket) AllowAt(t time.Time, n int) (tb.Decision, error) {
	cost, err := b.layout.unitsOf(n)
	if err != nil {
		return tb.Decision{}, err
	}
	return b.take(b.clock.instant(t), cost), nil
}

// Peek returns the decision that Allow would return now. It takes nothing.
func (b *Bucket) Peek(context.Context) (tb.Decision, error) {
	t := b.clock.read()
	if c := b.cell.Load(); c != nil {
		return c.peek(&b.layout, c.word.Load(), t, b.layout.scale), nil
	}
	return b.layout.fullDecision(b.layout.scale), nil
}

// Level returns how full the bucket is now. It takes nothing.
func (b *Bucket) Level(context.Context) (tb.Level, error) {
	t := b.clock.read()
	if c := b.cell.Load(); c != nil {
		return c.level(&b.layout, c.word.Load(), t), nil
	}
	return tb.Level{Tokens: float64(b.layout.tokens)}, nil
}

// take decides a call of the given cost in units at t. The first grant makes the cell, so the
// bucket's time begins at that reading. A grant that the delta cannot hold replaces the cell.
func (b *Bucket) take(t, cost uint64) tb.Decision {
	for {
		c := b.cell.Load()
		if c == nil {
			if cost > b.layout.capacity || b.begin(t, cost) {
				return b.layout.fullDecision(cost)
			}
			continue
		}
		d, _, verdict := c.take(&b.layout, t, cost)
		if verdict == decided {
			return d
		}
		base, word, d := c.successor(&b.layout, t, cost)
		if b.cell.CompareAndSwap(c, new(cell).init(base, word)) {
			return d
		}
	}
}

// begin makes the first cell, charged with cost at t, and reports whether it did.
func (b *Bucket) begin(t, cost uint64) bool {
	p := b.layout.positionAt(t)
	return b.cell.CompareAndSwap(nil, new(cell).init(p.blocks, b.layout.pack(p.rest, cost)))
}
