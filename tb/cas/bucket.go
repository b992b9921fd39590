package cas

import (
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/check"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Bucket is one token bucket without a key. It is the ratelimit.Bucket, whose documentation has its
// manual. The zero Bucket has no limit, and a call that needs one panics. All methods are safe for
// concurrent use.
type Bucket struct {
	clock  clock
	cell   atomic.Pointer[cell] // nil before the first grant
	limits limits               // last, so that its counts are not beside what every call reads
}

// NewBucket returns a full bucket. The options about keys have no effect. It returns a
// *tb.ConfigError if the limit or an option is out of range.
func NewBucket(limit tb.Limit, opts ...tb.Option) (*Bucket, error) {
	return NewBucketAt(time.Now(), limit, opts...)
}

// NewBucketAt is NewBucket for a caller that has already read the clock. Without the option
// WithClock, the time of the bucket begins with t: readings may be from 146 years before t to 292
// years after it. A test may use times of its own for t and for all calls with a time.
func NewBucketAt(t time.Time, limit tb.Limit, opts ...tb.Option) (*Bucket, error) {
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	s, err := tb.Apply(opts...)
	if err != nil {
		return nil, err
	}
	b := &Bucket{clock: newClock(s.Now, t, limit)}
	b.limits.one.Store(newLayout(limit, 0, b.clock.firstInstant))
	return b, nil
}

// Allow takes one token.
func (b *Bucket) Allow() tb.Decision {
	// This is take, inlined by hand: a call would add 1.5 ns.
	t := b.clock.read()
	c, m := b.load(), b.layout()
	if c != nil {
		if d, _, _, ok := c.take(m, t, m.scale); ok {
			return d
		}
	}
	return b.take(t, 1)
}

// AllowN takes a number of tokens, or none; see Limiter.AllowN.
func (b *Bucket) AllowN(cost float64) (tb.Decision, error) {
	if err := check.Cost(cost); err != nil {
		return tb.Decision{}, err
	}
	return b.take(b.clock.read(), cost), nil
}

// AllowAt is AllowN for a caller that has already read the clock; see Limiter.AllowAt.
func (b *Bucket) AllowAt(t time.Time, cost float64) (tb.Decision, error) {
	if err := check.Cost(cost); err != nil {
		return tb.Decision{}, err
	}
	return b.take(b.clock.instant(t), cost), nil
}

// take takes a number of tokens at t. It cannot fail.
func (b *Bucket) take(t uint64, cost float64) tb.Decision {
	c, m := b.load(), b.layout()
	if c != nil {
		if d, _, _, ok := c.take(m, t, m.unitsOf(cost)); ok {
			return d
		}
	}
	o, _, _ := spend(b, t, request{tokens: cost})
	return o.Decision
}

// AddAt puts a number of tokens into the bucket at t, or takes a negative number, also into a debt
// of up to 2³¹ tokens. It does nothing if the number is NaN, or if the debt would be paid only
// after the clock ends.
func (b *Bucket) AddAt(t time.Time, tokens float64) {
	at := b.clock.instant(t)
	switch {
	case tokens > 0:
		refund(b, at, tokens, 0)
	case tokens < 0:
		if b.load() == nil {
			b.fill(b.layoutOf(nil), at)
		}
		_, _, _ = spend(b, at, request{kind: adds, tokens: -tokens, within: tb.Never})
	}
}

// Peek returns the decision that Allow would return now. It takes nothing.
func (b *Bucket) Peek() tb.Decision {
	t := b.clock.read()
	d, _ := peek(b, b.load(), b.layout(), t, &request{tokens: 1})
	return d
}

// Level returns how full the bucket is now. It takes nothing.
func (b *Bucket) Level() tb.Level { return b.LevelAt(b.clock.time()) }

// LevelAt is Level for a caller that has already read the clock; see Limiter.AllowAt.
func (b *Bucket) LevelAt(t time.Time) tb.Level {
	l, _ := level(b, b.clock.instant(t), 0)
	return l
}

// SetLimit is Limiter.SetLimit for the bucket. The bucket remembers one limit, because it first
// moves to the limit that ends, unless it would lose by the move: its own time is ahead of the
// clock, or the limit has larger units.
func (b *Bucket) SetLimit(limit tb.Limit) error {
	return b.limits.setLimit(&b.limits.one, limit, b.clock.read, b.enter)
}

// SetLimitAt is SetLimit for a caller that has already read the clock; see Limiter.AllowAt. A
// reading before the last change counts as the reading of that change.
func (b *Bucket) SetLimitAt(t time.Time, limit tb.Limit) error {
	return b.limits.setLimit(
		&b.limits.one, limit, func() uint64 { return b.clock.instant(t) }, b.enter)
}

// enter makes a cell of m, so that no cell of an era before is left, and returns m without these
// eras, unless the bucket would lose by it: see SetLimit. The cell of a hold that ends later stays.
// The caller that has sealed it may replace it by one of an era before m. SetLimit has its lock.
func (b *Bucket) enter(m *layout, t uint64) *layout {
	b.fill(m, t) // before the first grant it is full
	whole := true
	visit(b, b.load(), t, func(_ *layout, c *cell, has balance) (balance, bool) {
		word := c.word.Load()
		if until, _ := c.heldUntil(word); m.owns(c) || c.isHeld() && until > m.begin {
			whole = m.owns(c) || !isSealed(word)
			return has, false
		}
		tokens, since := m.tokensSince(c, word)
		whole = since <= m.begin && tokens%int64(maxScale/m.scale) == 0
		return has, whole
	})
	if !whole {
		return m
	}
	return m.ended(t)
}

// fill makes the first cell of the bucket, a full one at t, unless it has one. If m has ended since
// it was loaded, the bucket has one, which SetLimit has made.
func (b *Bucket) fill(m *layout, t uint64) {
	b.cell.CompareAndSwap(nil, newCell(m.cellOf(balance{time: m.supply.at(t)}, t)))
}

// Limit returns the limit of the bucket.
func (b *Bucket) Limit() tb.Limit { return b.limits.present(0).limit }

// The methods of home. The first grant makes the cell, so the bucket's time begins at that
// reading.

func (b *Bucket) load() *cell { return b.cell.Load() }

func (b *Bucket) layout() *layout        { return b.limits.one.Load() }
func (b *Bucket) layoutOf(*cell) *layout { return b.limits.present(0) }
func (b *Bucket) shared() *limits        { return &b.limits }
func (b *Bucket) times() *clock          { return &b.clock }
func (b *Bucket) entersTier() bool       { return false }

func (b *Bucket) replace(old *cell, x content) *cell {
	next := newCell(x)
	if !b.cell.CompareAndSwap(old, next) {
		return nil
	}
	return next
}

func (b *Bucket) insert(
	m *layout, t uint64, want request,
) (o result, r receipt, done bool, err error) {
	next, o := want.decide(m, balance{}, t)
	if !o.Allowed { // no bucket can ever grant it
		return o, r, true, nil
	}
	x := m.cellOf(next, t)
	r = receipt{cell: newCell(x), layout: m, after: x.word}
	return o, r, b.cell.CompareAndSwap(nil, r.cell), nil
}

func (b *Bucket) refuses(*layout, uint64) (time.Duration, error) { return 0, nil }
