package cas

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit/lru"
	"github.com/seed-181794aa/ratelimit/tb"
)

// idle is how long a bucket has been full before a new key may push it out of a
// table that has room: long enough for a client that comes back every few seconds to
// find its bucket.
const idle = uint64(time.Minute)

// Limiter is a token bucket per key of type K. It implements tb.Limiter if K is
// string. Use New or NewTokenBucket to make one; all methods are safe for concurrent
// use.
type Limiter[K comparable] struct {
	meter  meter
	clock  clock
	table  lru.Map[K, bucket]
	ledger *ledger
}

// TokenBucket is a limiter with string keys.
type TokenBucket = Limiter[string]

var _ tb.Limiter = (*TokenBucket)(nil)

// NewTokenBucket returns a limiter of capacity tokens a key, refilled at refillPerSec
// tokens a second; see tb.LimitPerSecond for how the rate is understood. It panics
// with a *tb.ConfigError if an argument or option is out of range.
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
	l := &Limiter[K]{meter: newMeter(limit), clock: newClock(s.Now, limit)}
	l.ledger = &ledger{meter: &l.meter}
	l.table.Init(s.MaxKeys, s.Overflow == tb.RefuseNew, l.ledger)
	return l, nil
}

// Allow takes one token of key's bucket. The context is not looked at.
func (l *Limiter[K]) Allow(_ context.Context, key K) (tb.Decision, error) {
	// This is take, by hand: the call would cost a nanosecond and a half of 47.
	t := l.clock.read()
	b := l.table.Load(key)
	if b != nil {
		if d, _, state := b.take(&l.meter, t, l.meter.scale); state == decided {
			return d, nil
		}
	}
	d, _, err := l.settle(b, t, key, l.meter.scale)
	return d, err
}

// AllowN takes n tokens, or none. It returns tb.ErrInvalidCost if n is not positive.
func (l *Limiter[K]) AllowN(_ context.Context, key K, n int) (tb.Decision, error) {
	cost, err := l.meter.whole(n)
	if err != nil {
		return tb.Decision{}, err
	}
	return l.take(l.clock.read(), key, cost)
}

// AllowCost takes a decimal number of tokens, or none. The cost is rounded up to the
// resolution of the limiter, which is 10⁻⁶ token for capacities up to 83 and Capacity·2⁻²³
// or finer for all: 0.1 is exactly a tenth for capacities up to 8,388,607. It
// returns tb.ErrInvalidCost if cost is not positive, NaN or infinite.
func (l *Limiter[K]) AllowCost(_ context.Context, key K, cost float64) (tb.Decision, error) {
	units, err := l.meter.decimal(cost)
	if err != nil {
		return tb.Decision{}, err
	}
	return l.take(l.clock.read(), key, units)
}

// AllowAt is AllowN for a caller that has read the clock already. Use the clock of
// the limiter, or one that agrees with it.
func (l *Limiter[K]) AllowAt(t time.Time, key K, n int) (tb.Decision, error) {
	cost, err := l.meter.whole(n)
	if err != nil {
		return tb.Decision{}, err
	}
	return l.take(l.clock.instant(t), key, cost)
}

// Peek returns the decision that Allow would return now. It takes nothing, adds no key and
// waits for no insert. If one is under way in a full table under RefuseNew, the decision on
// another new key is of the table before that: Allow may refuse for longer.
func (l *Limiter[K]) Peek(_ context.Context, key K) (tb.Decision, error) {
	d, _, err := l.peek(l.clock.read(), key, l.meter.scale)
	return d, err
}

// Level returns how full key's bucket is now. It takes nothing, adds no key and waits for no
// insert. A key that is not in the table has a full bucket; if the table would refuse that key,
// its bucket has no tokens, and is full when there is room.
func (l *Limiter[K]) Level(_ context.Context, key K) (tb.Level, error) {
	return l.level(l.clock.read(), key)
}

// Reset removes key, whose bucket is full again when it comes back. What the key has
// been granted until then no longer counts: C1 holds before the reset and after it, but
// across it the key may be granted up to Capacity tokens more. Reset is for operators:
// it holds up new keys while it walks over the table.
func (l *Limiter[K]) Reset(key K) { l.table.Remove(key, l.ledger.forget) }

// Len returns the number of keys in the table, never more than MaxKeys. It takes the lock
// of inserts.
func (l *Limiter[K]) Len() int { return l.table.Len() }

// Stats returns the state of the table and what its bound has cost so far. It takes the
// lock of inserts.
func (l *Limiter[K]) Stats() tb.Stats {
	var s tb.Stats
	l.table.Pause(func(keys int) { s = l.ledger.stats(keys) })
	return s
}

// take decides on a call of the given cost in units at the instant t.
func (l *Limiter[K]) take(t uint64, key K, cost uint64) (tb.Decision, error) {
	b := l.table.Load(key)
	if b != nil {
		if d, _, state := b.take(&l.meter, t, cost); state == decided {
			return d, nil
		}
	}
	d, _, err := l.settle(b, t, key, cost)
	return d, err
}

// place is a bucket and the word that a call left there.
type place struct {
	bucket *bucket
	word   uint64
}

// settle is take where the key is not in the table and b is nil, or its bucket b may be
// sealed. Each turn of the loop either decides, or completes a step that stood in the
// way. It also returns where it took the cost.
func (l *Limiter[K]) settle(
	b *bucket, t uint64, key K, cost uint64,
) (tb.Decision, place, error) {
	for ; ; b = l.table.Load(key) {
		if b != nil {
			d, word, state := b.take(&l.meter, t, cost)
			if state == decided {
				return d, place{b, word}, nil
			}
			if state == moved {
				if d, p, ok := l.move(key, b, t, cost); ok {
					return d, p, nil
				}
				continue
			}
			// It is gone: its evictor holds the lock that insert waits for.
		}
		if d, p, done, err := l.insert(key, t, cost); done {
			return d, p, err
		}
	}
}

// move grants a call of the given cost on b, whose delta ran out, by putting in its place
// a successor that was charged the cost. It is not ok if b had been replaced before.
func (l *Limiter[K]) move(
	key K, b *bucket, t, cost uint64,
) (d tb.Decision, p place, ok bool) {
	base, word, d := b.successor(&l.meter, t, cost)
	next := l.table.Replace(key, b, func(next *bucket) { next.set(base, word) })
	return d, place{next, word}, next != nil
}

// insert decides on the first call of a key. It is not done if the key is in the table
// after all.
func (l *Limiter[K]) insert(
	key K, t uint64, cost uint64,
) (d tb.Decision, p place, done bool, err error) {
	if lost(key) {
		return d, p, true, tb.ErrInvalidKey
	}
	if cost > l.meter.capacity {
		return l.meter.stranger(cost), p, true, nil
	}
	b, until, outcome := l.table.Insert(key, t, t-min(t, idle), func(b *bucket) {
		base, word := l.ledger.admit(t, cost)
		b.set(base, word)
		p.word = word
	})
	p.bucket = b
	switch outcome {
	case lru.Found:
		return d, p, false, nil
	case lru.Refused:
		l.ledger.refused.Add(1)
		return tb.Decision{RetryAfter: l.meter.wait(t, until)}, p, true, nil
	}
	return l.meter.stranger(cost), p, true, nil
}

// peek returns what take would decide, and the key's bucket if there is one.
func (l *Limiter[K]) peek(t uint64, key K, cost uint64) (tb.Decision, *bucket, error) {
	b, word, refused, err := l.look(t, key)
	switch {
	case err != nil:
		return tb.Decision{}, nil, err
	case b != nil:
		return b.peek(&l.meter, word, t, cost), b, nil
	case refused > 0 && cost <= l.meter.capacity:
		return tb.Decision{RetryAfter: refused}, nil, nil
	}
	return l.meter.stranger(cost), nil, nil
}

func (l *Limiter[K]) level(t uint64, key K) (tb.Level, error) {
	b, word, refused, err := l.look(t, key)
	switch {
	case err != nil:
		return tb.Level{}, err
	case b != nil:
		return b.level(&l.meter, word, t), nil
	case refused > 0:
		return tb.Level{NextToken: refused, Full: refused}, nil
	}
	return tb.Level{Tokens: float64(l.meter.tokens)}, nil
}

// look returns key's bucket and its word. If the key is not in the table, it returns no
// bucket, and for how long the table would refuse the key, or 0.
func (l *Limiter[K]) look(
	t uint64, key K,
) (b *bucket, word uint64, refused time.Duration, err error) {
	if lost(key) {
		return nil, 0, 0, tb.ErrInvalidKey
	}
	for {
		b = l.table.Load(key)
		if b != nil {
			if word = b.word.Load(); word != evicted {
				return b, word, 0, nil
			}
		}
		until, full := l.table.Full(t)
		if !full {
			return nil, 0, 0, nil
		}
		if l.table.Load(key) == b { // and the key is not what the table is full with now
			return nil, 0, l.meter.wait(t, until), nil
		}
	}
}

// lost says whether a key, such as a NaN, would never be found again in a table.
func lost[K comparable](key K) bool {
	return key != key //nolint:gocritic // that is what a NaN is known by
}
