// Package mutex is the reference implementation of the contract of package tb: one lock, a struct
// for each bucket, divisions in 128 bits, and an exact order of eviction. The tests check tb/cas
// against it, bit for bit, and the benchmarks compare both. The two packages share no arithmetic.
// Applications use tb/cas, which has the same methods but Forget, and says more of them.
package mutex

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/check"
	"github.com/seed-181794aa/ratelimit/tb"
)

// The contract states both numbers: see Eviction in package tb.
const (
	// idleTime is how long a bucket must have been full before a new key drops it.
	idleTime = uint64(time.Minute)

	// idleDrops is the most buckets that one new key drops.
	idleDrops = 16
)

// Limiter is a token bucket for each key of type K. All methods are safe for concurrent use.
type Limiter[K comparable] struct {
	settings     tb.Settings
	firstInstant uint64 // instant of the first reading: whole periods, below 2⁶³ ns
	started      sync.Once
	start        time.Time // the clock's first reading

	mu       sync.Mutex
	tiers    []*limit // the present ones
	buckets  map[K]*bucket[K]
	order    order[K]
	inserts  uint64
	earliest uint64 // time before which no new bucket starts
	stats    tb.Stats
	forgiven wide // millionths of a token, which an int64 may not hold
	settled  tokenSum
	unpaid   tokenSum
}

// bucket is the state of one key.
type bucket[K comparable] struct {
	state

	key      K
	sequence uint64 // from 1 on; 0 before the bucket is in the table
	full     uint64 // instant at which it will be full: its rank in the order
	index    int    // in the order
}

// TokenBucket is a limiter with string keys.
type TokenBucket = Limiter[string]

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
	return NewTiered[K]([]tb.Limit{limit}, opts...)
}

// NewTiered returns a limiter whose keys have different limits. ChargeIn names the tier of a key.
func NewTiered[K comparable](limits []tb.Limit, opts ...tb.Option) (*Limiter[K], error) {
	if len(limits) < 1 || len(limits) > 1<<16 {
		return nil, &tb.ConfigError{Field: "limits", Value: len(limits), Range: "1 to 65536"}
	}
	for _, limit := range limits {
		if err := limit.Validate(); err != nil {
			return nil, err
		}
	}
	if err := tb.CheckKeyType[K](); err != nil {
		return nil, err
	}
	s, err := tb.Apply(opts...)
	if err != nil {
		return nil, err
	}
	l := &Limiter[K]{settings: s, buckets: make(map[K]*bucket[K])}
	per := uint64(limits[0].Per)
	l.firstInstant = math.MaxInt64 / per * per
	for i, limit := range limits {
		m := newLimit(limit, l.firstInstant+math.MaxInt64)
		m.tier = i
		if m.per <= l.firstInstant {
			m.from = l.firstInstant % m.per // the first reading is after whole periods
		}
		l.tiers = append(l.tiers, m)
	}
	if s.Now == nil {
		l.instant(time.Now())
	}
	return l, nil
}

// Allow takes one token of key's bucket. It ignores the context.
func (l *Limiter[K]) Allow(_ context.Context, key K) (tb.Decision, error) {
	return l.decide(l.read(), key, &call{tokens: 1})
}

// AllowN takes a decimal number of tokens, or none.
func (l *Limiter[K]) AllowN(_ context.Context, key K, cost float64) (tb.Decision, error) {
	if err := check.Cost(cost); err != nil {
		return tb.Decision{}, err
	}
	return l.decide(l.read(), key, &call{tokens: cost})
}

// AllowAt is AllowN for a caller that has already read the clock.
func (l *Limiter[K]) AllowAt(t time.Time, key K, cost float64) (tb.Decision, error) {
	if err := check.Cost(cost); err != nil {
		return tb.Decision{}, err
	}
	return l.decide(l.instant(t), key, &call{tokens: cost})
}

// Peek returns the decision that Allow would return now. It takes nothing and adds no key.
func (l *Limiter[K]) Peek(_ context.Context, key K) (tb.Decision, error) {
	return l.decide(l.read(), key, &call{tokens: 1, look: true})
}

// Level returns how full key's bucket is now. It takes nothing and adds no key.
func (l *Limiter[K]) Level(_ context.Context, key K) (tb.Level, error) {
	return l.level(l.read(), key, &call{})
}

// Reset fills key's bucket, if the table has it, and forgives its debt and ends a hold.
func (l *Limiter[K]) Reset(key K) {
	now := l.read()
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, m, _ := l.find(now, key, 0); b != nil {
		full := m.first(now)
		full.moves = b.moves + 1 // Cancel of an earlier grant gives nothing back
		l.put(b, full)
	}
}

// Forget removes key from the table, as a store does whose keys expire. tb/cas has no such method.
func (l *Limiter[K]) Forget(key K) {
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
	s.Forgiven = (float64(l.forgiven.hi)*(1<<64) + float64(l.forgiven.lo)) / millionths
	s.Settled, s.Unpaid = l.settled.sum(), l.unpaid.sum()
	return s
}

// decide decides a call at now.
func (l *Limiter[K]) decide(now uint64, key K, c *call) (tb.Decision, error) {
	l.mu.Lock()
	err := l.spend(now, key, c, nil)
	l.mu.Unlock() // not deferred, because that adds 29 of 700 instructions
	return c.Decision, err
}

func (l *Limiter[K]) level(now uint64, key K, c *call) (tb.Level, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isNaN(key) {
		return tb.Level{}, tb.ErrInvalidKey
	}
	b, m, s := l.find(now, key, c.tier)
	if b == nil {
		if until, ok := l.makeRoom(now, false); !ok {
			wait := m.wait(now, until)
			return tb.Level{NextToken: wait, Full: wait}, nil
		}
	}
	return m.level(s, now, m.unitsOf(c.keep)), nil
}

// spend decides a call at now, and fills in the receipt of a grant, unless that is nil. The lock
// is held.
func (l *Limiter[K]) spend(now uint64, key K, c *call, r *receipt[K]) error {
	b, m, found := l.find(now, key, c.tier)
	if b == nil {
		c.Decision, c.delay = tb.Decision{}, 0
		if isNaN(key) {
			return tb.ErrInvalidKey
		}
		if m.unitsOf(c.tokens)+m.unitsOf(c.keep) <= m.capacity {
			if until, ok := l.makeRoom(now, !c.look); !ok {
				if !c.look {
					l.stats.RefusedNew++
				}
				c.delay = m.wait(now, until)
				c.RetryAfter = c.delay
				return nil
			}
		}
		b = &bucket[K]{key: key, state: *found}
	}
	s := *found
	m.charge(&s, now, c)
	switch {
	case c.look:
	case !c.Allowed:
		l.putRefused(b, &s)
	case r != nil:
		before := *found
		l.put(b, &s)
		*r = receipt[K]{b, before, s}
	default:
		l.put(b, &s)
	}
	return nil
}

// putRefused gives b the state that a refusal leaves, if the key changes its tier, or the refusal
// holds the bucket.
func (l *Limiter[K]) putRefused(b *bucket[K], s *state) {
	if s.limit.tier != b.limit.tier || s.until > b.until {
		l.put(b, s)
	}
}

// find returns the bucket of a key, or nil, the limit of its tier, and what a call at now finds:
// the state of the bucket under that limit, or a full bucket. The tier is asked-1, or if asked is
// 0, the bucket's own or 0. The caller does not change the state, which may be the bucket's own.
func (l *Limiter[K]) find(now uint64, key K, asked int) (*bucket[K], *limit, *state) {
	b := l.buckets[key]
	m := l.tiers[0]
	if asked > 0 {
		m = l.tiers[asked-1]
	} else if b != nil {
		m = l.tiers[b.limit.tier]
	}
	if b == nil {
		return nil, m, m.first(max(now, l.earliest))
	}
	return b, m, b.in(m, now)
}

// isNaN reports whether key is a NaN or contains one: no map would find it again.
func isNaN[K comparable](key K) bool {
	return key != key // only a NaN differs from itself
}

// read returns the instant of the limiter's clock.
func (l *Limiter[K]) read() uint64 {
	if l.settings.Now == nil {
		return l.firstInstant + uint64(time.Since(l.start)) // in less time than clock
	}
	now, _ := l.clock()
	return now
}

// clock returns the reading of the limiter's clock, and its instant.
func (l *Limiter[K]) clock() (now uint64, t time.Time) {
	t = time.Now()
	if l.settings.Now != nil {
		t = l.settings.Now()
	}
	return l.instant(t), t
}

// instant returns the instant of the reading t, at least 0. That of the first one is firstInstant.
func (l *Limiter[K]) instant(t time.Time) uint64 {
	l.started.Do(func() { l.start = t })
	return l.firstInstant + uint64(max(int64(t.Sub(l.start)), -int64(l.firstInstant)))
}
