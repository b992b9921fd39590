package cas

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit/lru"
	"github.com/seed-181794aa/ratelimit/tb"
)

// idleTime is how long a bucket must have been full before an insert drops it. So a client that
// comes back every few seconds finds its bucket.
const idleTime = uint64(time.Minute)

// Limiter is a token bucket for each key of type K. It implements tb.Limiter if K is string.
// Use New or NewTokenBucket to make one. All methods are safe for concurrent use.
//
// Most callers want Allow. Allow, AllowN, AllowCost and AllowAt take tokens. Charge makes one
// part of a call on several buckets. Peek and Level take nothing. Reset, Len and Stats are for
// operators.
type Limiter[K comparable] struct {
	layout  layout
	clock   clock
	table   lru.Map[K, cell]
	evictor *evictor
}

// TokenBucket is a limiter with string keys.
type TokenBucket = Limiter[string]

var _ tb.Limiter = (*TokenBucket)(nil)

// NewTokenBucket returns a limiter of capacity tokens a key, refilled at refillPerSec tokens a
// second; see tb.LimitPerSecond. It panics with a *tb.ConfigError if an argument or option is
// out of range.
func NewTokenBucket(capacity int, refillPerSec float64, opts ...tb.Option) *TokenBucket {
	limit, err := tb.LimitPerSecond(capacity, refillPerSec)
	if err != nil {
		panic(err)
	}
	l, err := New[string](limit, opts...)
	if err != nil {
		panic(err)
	}
	return l
}

// New returns a limiter with a bucket of the given limit for each key. It returns a
// *tb.ConfigError if the limit or an option is out of range, or K contains an interface.
func New[K comparable](limit tb.Limit, opts ...tb.Option) (*Limiter[K], error) {
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	if err := tb.CheckKeyType[K](); err != nil {
		return nil, err
	}
	s, err := tb.Apply(opts...)
	if err != nil {
		return nil, err
	}
	l := &Limiter[K]{layout: newLayout(limit), clock: newClock(s.Now, limit)}
	l.evictor = &evictor{layout: &l.layout}
	l.table.Init(s.MaxKeys, s.Overflow == tb.RefuseNew, l.evictor)
	return l, nil
}

// Allow takes one token of key's bucket. It ignores the context.
func (l *Limiter[K]) Allow(_ context.Context, key K) (tb.Decision, error) {
	// This is take, inlined by hand: a call would add 1.5 ns.
	t := l.clock.read()
	c := l.table.Load(key)
	if c != nil {
		if d, _, verdict := c.take(&l.layout, t, l.layout.scale); verdict == decided {
			return d, nil
		}
	}
	d, _, err := l.takeSlow(c, t, key, l.layout.scale)
	return d, err
}

// AllowN takes n tokens, or none. It returns tb.ErrInvalidCost if n is not positive.
func (l *Limiter[K]) AllowN(_ context.Context, key K, n int) (tb.Decision, error) {
	cost, err := l.layout.unitsOf(n)
	if err != nil {
		return tb.Decision{}, err
	}
	return l.take(l.clock.read(), key, cost)
}

// AllowCost takes a decimal number of tokens, or none. It rounds the cost up to units of 10⁻⁶
// token for capacities up to 83, and of Capacity·2⁻²³ tokens or less for larger ones. 0.1 is
// exactly a tenth for capacities up to 8,388,607. It returns tb.ErrInvalidCost if cost is zero,
// negative, NaN or infinite.
func (l *Limiter[K]) AllowCost(_ context.Context, key K, cost float64) (tb.Decision, error) {
	units, err := l.layout.unitsOfCost(cost)
	if err != nil {
		return tb.Decision{}, err
	}
	return l.take(l.clock.read(), key, units)
}

// AllowAt is AllowN for a caller that has already read the clock. t must be a reading of the
// limiter's clock: time.Now(), unless WithClock sets another.
func (l *Limiter[K]) AllowAt(t time.Time, key K, n int) (tb.Decision, error) {
	cost, err := l.layout.unitsOf(n)
	if err != nil {
		return tb.Decision{}, err
	}
	return l.take(l.clock.instant(t), key, cost)
}

// Peek returns the decision that Allow would return now. It takes nothing, adds no key and waits
// for no insert. Under RefuseNew, while another call holds the lock of the table, Peek decides on
// a new key by the least stamp that the table last published. Then Allow may refuse the key
// although Peek does not, or for longer.
func (l *Limiter[K]) Peek(_ context.Context, key K) (tb.Decision, error) {
	d, _, err := l.peek(l.clock.read(), key, l.layout.scale)
	return d, err
}

// Level returns how full key's bucket is now. It takes nothing, adds no key and waits for no
// insert. A key that is not in the table has a full bucket. If the table would refuse the key,
// the level has no tokens, and both of its times are the time until there is room.
func (l *Limiter[K]) Level(_ context.Context, key K) (tb.Level, error) {
	return l.level(l.clock.read(), key)
}

// Reset removes key. Its bucket is full when the key comes back. C1 holds before the reset and
// after it. In an interval that contains the reset, the key may be granted up to Capacity tokens
// more. Reset takes time linear in the number of keys, and new keys wait for it.
func (l *Limiter[K]) Reset(key K) { l.table.Remove(key, l.evictor.retireForReset) }

// Len returns the number of keys in the table, never more than MaxKeys. It waits for inserts.
func (l *Limiter[K]) Len() int { return l.table.Len() }

// Stats returns the number of keys and the cost of eviction so far. It waits for inserts.
func (l *Limiter[K]) Stats() tb.Stats {
	var s tb.Stats
	l.table.Pause(func(keys int) { s = l.evictor.stats(keys) })
	return s
}

// take decides a call of the given cost in units at t.
func (l *Limiter[K]) take(t uint64, key K, cost uint64) (tb.Decision, error) {
	c := l.table.Load(key)
	if c != nil {
		if d, _, verdict := c.take(&l.layout, t, cost); verdict == decided {
			return d, nil
		}
	}
	d, _, err := l.takeSlow(c, t, key, cost)
	return d, err
}

// receipt is the cell that a grant charged, and the word that the grant stored. Undo needs both.
type receipt struct {
	cell *cell
	word uint64
}

// takeSlow decides a call on any state of the key: not in the table (c is nil), or in a cell c
// that may be sealed or evicted. Each turn of the loop decides, or finds that another goroutine
// has replaced the cell or inserted the key.
func (l *Limiter[K]) takeSlow(
	c *cell, t uint64, key K, cost uint64,
) (tb.Decision, receipt, error) {
	for ; ; c = l.table.Load(key) {
		if c != nil {
			d, word, verdict := c.take(&l.layout, t, cost)
			if verdict == decided {
				return d, receipt{c, word}, nil
			}
			if verdict == mustMove {
				if d, r, ok := l.move(key, c, t, cost); ok {
					return d, r, nil
				}
				continue
			}
			// c is gone. The insert waits for the goroutine that evicts it.
		}
		if d, r, done, err := l.insert(key, t, cost); done {
			return d, r, err
		}
	}
}

// move grants a call on c, whose delta ran out: it replaces c with a successor that is
// charged with the cost. ok is false if another goroutine replaced c first.
func (l *Limiter[K]) move(
	key K, c *cell, t, cost uint64,
) (d tb.Decision, r receipt, ok bool) {
	base, word, d := c.successor(&l.layout, t, cost)
	next := l.table.Replace(key, c, func(next *cell) { next.init(base, word) })
	return d, receipt{next, word}, next != nil
}

// insert decides a call on a key that is not in the table. done is false if another goroutine has
// inserted the key meanwhile.
func (l *Limiter[K]) insert(
	key K, t uint64, cost uint64,
) (d tb.Decision, r receipt, done bool, err error) {
	if isNaN(key) {
		return d, r, true, tb.ErrInvalidKey
	}
	if cost > l.layout.capacity {
		return l.layout.fullDecision(cost), r, true, nil
	}
	c, until, outcome := l.table.Insert(key, t, t-min(t, idleTime), func(c *cell) {
		base, word := l.evictor.start(t, cost)
		c.init(base, word)
		r.word = word
	})
	r.cell = c
	switch outcome {
	case lru.Found:
		return d, r, false, nil
	case lru.Refused:
		l.evictor.refused.Add(1)
		return tb.Decision{RetryAfter: l.layout.wait(t, until)}, r, true, nil
	}
	return l.layout.fullDecision(cost), r, true, nil
}

// peek returns what take would decide, and the key's cell if there is one.
func (l *Limiter[K]) peek(t uint64, key K, cost uint64) (tb.Decision, *cell, error) {
	c, word, refused, err := l.lookUp(t, key)
	switch {
	case err != nil:
		return tb.Decision{}, nil, err
	case c != nil:
		return c.peek(&l.layout, word, t, cost), c, nil
	case refused > 0 && cost <= l.layout.capacity:
		return tb.Decision{RetryAfter: refused}, nil, nil
	}
	return l.layout.fullDecision(cost), nil, nil
}

func (l *Limiter[K]) level(t uint64, key K) (tb.Level, error) {
	c, word, refused, err := l.lookUp(t, key)
	switch {
	case err != nil:
		return tb.Level{}, err
	case c != nil:
		return c.level(&l.layout, word, t), nil
	case refused > 0:
		return tb.Level{NextToken: refused, Full: refused}, nil
	}
	return tb.Level{Tokens: float64(l.layout.tokens)}, nil
}

// lookUp returns key's cell and its word. If the key is not in the table, it returns a nil
// cell, and how long the table would refuse the key, or 0.
func (l *Limiter[K]) lookUp(
	t uint64, key K,
) (c *cell, word uint64, refused time.Duration, err error) {
	if isNaN(key) {
		return nil, 0, 0, tb.ErrInvalidKey
	}
	for {
		c = l.table.Load(key)
		if c != nil {
			if word = c.word.Load(); word != evicted {
				return c, word, 0, nil
			}
		}
		until, full := l.table.Refuses(t)
		if !full {
			return nil, 0, 0, nil
		}
		if l.table.Load(key) == c { // still absent: the key itself did not fill the table
			return nil, 0, l.layout.wait(t, until), nil
		}
	}
}

// isNaN reports whether key is a NaN or contains one. No table would find such a key again.
func isNaN[K comparable](key K) bool {
	return key != key //nolint:gocritic // only a NaN differs from itself
}
