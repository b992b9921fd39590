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
//
// Allow, AllowN, AllowCost and AllowAt take tokens. Charge makes one part of a call on several
// buckets. Peek and Level take nothing.
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
	return b.peek(b.clock.read(), b.layout.scale), nil
}

// Level returns how full the bucket is now. It takes nothing.
func (b *Bucket) Level(context.Context) (tb.Level, error) {
	t := b.clock.read()
	if c := b.cell.Load(); c != nil {
		return c.level(&b.layout, c.word.Load(), t), nil
	}
	return tb.Level{Tokens: float64(b.layout.tokens)}, nil
}

// peek returns what take would decide.
func (b *Bucket) peek(t, cost uint64) tb.Decision {
	if c := b.cell.Load(); c != nil {
		return c.peek(&b.layout, c.word.Load(), t, cost)
	}
	return b.layout.fullDecision(cost)
}

// take decides a call of the given cost in units at t.
func (b *Bucket) take(t, cost uint64) tb.Decision {
	d, _ := b.takeForUndo(t, cost)
	return d
}

// takeForUndo is take for a caller that may undo the grant. The first grant makes the cell, so
// the bucket's time begins at that reading. A grant that the delta cannot hold replaces the cell.
func (b *Bucket) takeForUndo(t, cost uint64) (tb.Decision, receipt) {
	for {
		c := b.cell.Load()
		if c == nil {
			if cost > b.layout.capacity {
				return b.layout.fullDecision(cost), receipt{}
			}
			p := b.layout.positionAt(t)
			if r, ok := b.replace(nil, p.blocks, b.layout.pack(p.rest, cost)); ok {
				return b.layout.grant(cost), r
			}
			continue
		}
		d, word, verdict := c.take(&b.layout, t, cost)
		if verdict == decided {
			return d, receipt{c, word}
		}
		base, word, d := c.successor(&b.layout, t, cost)
		if r, ok := b.replace(c, base, word); ok {
			return d, r
		}
	}
}

// replace makes a cell of the given base and word the bucket's cell, if c still is.
func (b *Bucket) replace(c *cell, base, word uint64) (receipt, bool) {
	next := new(cell).init(base, word)
	return receipt{next, word}, b.cell.CompareAndSwap(c, next)
}
