// Package mutex is the reference implementation of the contract of package tb: one lock, a
// struct for each bucket, divisions in 128 bits, and an exact order of eviction. The tests check
// tb/cas against it, bit for bit, and the benchmarks compare both. The two packages share no
// arithmetic.
package mutex

import (
	"context"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

const (
	// idleTime is how long a bucket must have been full before a new key drops it.
	idleTime = uint64(time.Minute)

	// idleDrops is the most buckets that one new key drops.
	idleDrops = 16
)

// Limiter is a token bucket for each key of type K. It implements tb.Limiter if K is string. Use
// New or NewTokenBucket to make one. All methods are safe for concurrent use.
type Limiter[K comparable] struct {
	limit    limit
	settings tb.Settings
	started  sync.Once
	start    time.Time // the clock's first reading

	mu       sync.Mutex
	buckets  map[K]*bucket[K]
	order    order[K]
	inserts  uint64
	earliest uint64 // time before which no new bucket starts
	stats    tb.Stats
	forgiven int64 // units
}

// bucket is the state of one key.
type bucket[K comparable] struct {
	tokens int64  // units at that time
	time   uint64 // nanoseconds since the epoch

	key      K
	sequence uint64
	full     uint64 // instant at which it will be full: its rank in the order
	index    int    // in the order
}

// TokenBucket is a limiter with string keys.
type TokenBucket = Limiter[string]

var _ tb.Limiter = (*TokenBucket)(nil)

// NewTokenBucket returns a limiter of capacity tokens a key, refilled at refillPerSec tokens a
// second. It panics with a *tb.ConfigError if an argument or option is out of range.
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
	l := &Limiter[K]{limit: newLimit(limit), settings: s, buckets: make(map[K]*bucket[K])}
	if s.Now == nil {
		l.instant(time.Now())
	}
	return l, nil
}

// Allow takes one token of key's bucket. It ignores the context.
func (l *Limiter[K]) Allow(_ context.Context, key K) (tb.Decision, error) {
	return l.take(l.read(), key, l.limit.scale, true)
}

// AllowN takes n tokens, or none. It returns tb.ErrInvalidCost if n is not positive.
func (l *Limiter[K]) AllowN(_ context.Context, key K, n int) (tb.Decision, error) {
	cost, err := l.limit.unitsOf(n)
	if err != nil {
		return tb.Decision{}, err
	}
	return l.take(l.read(), key, cost, true)
}

// AllowCost takes a decimal number of tokens, or none. It rounds the cost up to the resolution of
// the limiter. It returns tb.ErrInvalidCost if cost is zero, negative, NaN or infinite.
func (l *Limiter[K]) AllowCost(_ context.Context, key K, cost float64) (tb.Decision, error) {
	units, err := l.limit.unitsOfCost(cost)
	if err != nil {
		return tb.Decision{}, err
	}
	return l.take(l.read(), key, units, true)
}

// AllowAt is AllowN for a caller that has already read the clock.
func (l *Limiter[K]) AllowAt(t time.Time, key K, n int) (tb.Decision, error) {
	cost, err := l.limit.unitsOf(n)
	if err != nil {
		return tb.Decision{}, err
	}
	return l.take(l.instant(t), key, cost, true)
}

// Peek returns the decision that Allow would return now. It takes nothing and adds no key.
func (l *Limiter[K]) Peek(_ context.Context, key K) (tb.Decision, error) {
	return l.take(l.read(), key, l.limit.scale, false)
}

// Level returns how full key's bucket is now. It takes nothing and adds no key. A key that is not
// in the table has a full bucket. If the table would refuse the key, the level has no tokens, and
// both of its times are the time until there is room.
func (l *Limiter[K]) Level(_ context.Context, key K) (tb.Level, error) {
	return l.level(l.read(), key)
}

// Reset removes key. Its bucket is full when the key comes back. C1 holds before the reset and
// after it. In an interval that contains the reset, the key may be granted up to Capacity tokens
// more.
func (l *Limiter[K]) Reset(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.buckets[key]; ok {
		l.remove(b)
	}
}

// Len returns the number of keys in the table, never more than MaxKeys.
func (l *Limiter[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.buckets)
}

// Stats returns the number of keys and the cost of eviction so far.
func (l *Limiter[K]) Stats() tb.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Keys = len(l.buckets)
	s.Forgiven = float64(l.forgiven) / float64(l.limit.scale)
	return s
}

// take decides a call. Without spend it changes nothing.
func (l *Limiter[K]) take(now uint64, key K, cost int64, spend bool) (tb.Decision, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decide(now, key, cost, spend)
}

func (l *Limiter[K]) level(now uint64, key K) (tb.Level, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isNaN(key) {
		return tb.Level{}, tb.ErrInvalidKey
	}
	b, ok := l.buckets[key]
	if !ok {
		b = &bucket[K]{key: key, tokens: l.limit.capacity, time: now}
		if until, ok := l.makeRoom(b, now, false); !ok {
			wait := l.limit.wait(now, until)
			return tb.Level{NextToken: wait, Full: wait}, nil
		}
	}
	tokens, since := l.refilled(b, now)
	return l.limit.level(tokens, since, now), nil
}

// decide is take with the lock held.
func (l *Limiter[K]) decide(now uint64, key K, cost int64, spend bool) (tb.Decision, error) {
	if isNaN(key) {
		return tb.Decision{}, tb.ErrInvalidKey
	}
	b, ok := l.buckets[key]
	if !ok {
		b = &bucket[K]{key: key, tokens: l.limit.capacity, time: now}
		if cost <= l.limit.capacity {
			if until, ok := l.makeRoom(b, now, spend); !ok {
				return tb.Decision{RetryAfter: l.limit.wait(now, until)}, nil
			}
		}
	}
	tokens, since := l.refilled(b, now)
	if tokens < cost {
		return l.limit.refusal(tokens, since, now, cost), nil
	}
	if spend {
		b.tokens, b.time = tokens-cost, since
		l.rank(b)
	}
	return tb.Decision{Allowed: true, Remaining: int((tokens - cost) / l.limit.scale)}, nil
}

// isNaN reports whether key is a NaN or contains one: no map would find it again.
func isNaN[K comparable](key K) bool {
	return key != key //nolint:gocritic // only a NaN differs from itself
}

// refilled returns the tokens of b, and the time since which it has them: now, or b's own time if
// that is later.
func (l *Limiter[K]) refilled(b *bucket[K], now uint64) (tokens int64, since uint64) {
	if now <= b.time {
		return b.tokens, b.time
	}
	gain := l.limit.supply(now).minus(l.limit.supply(b.time))
	return min(l.limit.capacity, b.tokens+gain.clamp(l.limit.capacity)), now
}

// read returns the instant of the limiter's clock.
func (l *Limiter[K]) read() uint64 {
	if l.settings.Now == nil {
		return l.limit.firstInstant + uint64(time.Since(l.start))
	}
	return l.instant(l.settings.Now())
}

// instant returns the instant of the reading t, at least 0. The first reading is at
// limit.firstInstant.
func (l *Limiter[K]) instant(t time.Time) uint64 {
	l.started.Do(func() { l.start = t })
	return l.limit.firstInstant + uint64(max(int64(t.Sub(l.start)), -int64(l.limit.firstInstant)))
}
