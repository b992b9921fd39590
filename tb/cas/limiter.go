package cas

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/check"
	"github.com/seed-181794aa/ratelimit/lru"
	"github.com/seed-181794aa/ratelimit/tb"
)

// idleTime is how long a bucket must have been full before an insert drops it. So a client that
// comes back every few seconds finds its bucket.
const idleTime = uint64(time.Minute)

// MaxTiers is the most tiers of a limiter.
const MaxTiers = 1 << tierBits

// Limiter is a token bucket for each key of type K. It implements tb.Limiter if K is string. It is
// the ratelimit.Limiter, whose documentation has its manual. The zero Limiter has no limit, and a
// call that needs one panics. All methods are safe for concurrent use.
type Limiter[K comparable] struct {
	clock   clock
	table   lru.Map[K, cell]
	evictor *evictor
	limits  limits // last, so that its counts are not beside what every call reads
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
	l := &Limiter[K]{clock: newClock(s.Now, time.Now(), limit)}
	l.limits.one.Store(newLayout(limit, 0, l.clock.firstInstant))
	l.evictor = &evictor{limits: &l.limits}
	l.table.Init(s.MaxKeys, s.Overflow == tb.RefuseNew, l.evictor)
	return l, nil
}

// NewTiered returns a limiter whose keys have different limits, in one table with one bound. It
// returns a *tb.ConfigError as New does, and if limits has no limits or more than MaxTiers.
func NewTiered[K comparable](
	limits []tb.Limit, opts ...tb.Option,
) (*Limiter[K], error) {
	if len(limits) < 1 || len(limits) > MaxTiers {
		return nil, &tb.ConfigError{
			Field: "limits", Value: fmt.Sprint(len(limits), " limits"),
			Range: fmt.Sprint("1 to ", MaxTiers),
		}
	}
	l, err := New[K](limits[0], opts...)
	if err != nil {
		return nil, err
	}
	l.limits.one.Store(nil)
	l.limits.tiers = make([]atomic.Pointer[layout], len(limits))
	for i, limit := range limits {
		if err := limit.Validate(); err != nil {
			return nil, fmt.Errorf("tier %d: %w", i, err)
		}
		l.limits.tiers[i].Store(newLayout(limit, i, l.clock.firstInstant))
	}
	return l, nil
}

// Allow takes one token of key's bucket. It ignores the context.
func (l *Limiter[K]) Allow(_ context.Context, key K) (tb.Decision, error) {
	// This is allow, inlined by hand: a call would add 38 instructions, 2 ns.
	t := l.clock.read()
	c, at := l.table.Recent(key)
	if c == nil {
		return l.allowNew(at, t, key, 1)
	}
	m := l.limits.layoutOf(c)
	if d, _, after, ok := c.take(m, t, m.scale); ok {
		if d.Allowed && wins(after) {
			l.table.Remember(at.Hash, c, true)
		}
		return d, nil
	}
	return l.allowSlow(at.Hash, t, key, 1)
}

// AllowN takes a number of tokens, or none. It returns tb.ErrInvalidCost if cost is zero, negative,
// NaN or infinite.
func (l *Limiter[K]) AllowN(_ context.Context, key K, cost float64) (tb.Decision, error) {
	if err := check.Cost(cost); err != nil {
		return tb.Decision{}, err
	}
	return l.allow(l.clock.read(), key, cost)
}

// AllowAt is AllowN for a caller that has already read the clock.
func (l *Limiter[K]) AllowAt(t time.Time, key K, cost float64) (tb.Decision, error) {
	if err := check.Cost(cost); err != nil {
		return tb.Decision{}, err
	}
	return l.allow(l.clock.instant(t), key, cost)
}

// allow takes a number of tokens at t.
func (l *Limiter[K]) allow(t uint64, key K, cost float64) (tb.Decision, error) {
	c, at := l.table.Recent(key)
	if c == nil {
		return l.allowNew(at, t, key, cost)
	}
	m := l.limits.layoutOf(c)
	if d, _, after, ok := c.take(m, t, m.unitsOf(cost)); ok {
		if d.Allowed && wins(after) {
			l.table.Remember(at.Hash, c, true)
		}
		return d, nil
	}
	return l.allowSlow(at.Hash, t, key, cost)
}

// wins reports whether the grant that has left a word brings its key in front of the table, also in
// the place of another key. One grant in 16 does, so the keys with the most grants stay there.
func wins(word uint64) bool { return word*0x9e3779b97f4a7c15>>60 == 0 }

// allowNew is allow for a key that is not in the table. Recent has returned at.
func (l *Limiter[K]) allowNew(at lru.Spot, t uint64, key K, cost float64) (tb.Decision, error) {
	p, want := place[K]{Limiter: l, key: key, at: at}, request{tokens: cost}
	o, r, done, err := p.insert(l.limits.present(0), t, want)
	if !done {
		return l.allowSlow(at.Hash, t, key, cost)
	}
	if o.Allowed {
		l.table.Remember(at.Hash, r.cell, wins(r.after))
	}
	return o.Decision, err
}

// allowSlow is allow for a key in any state.
func (l *Limiter[K]) allowSlow(hash, t uint64, key K, cost float64) (tb.Decision, error) {
	o, r, err := spend(l.placeOf(key), t, request{tokens: cost})
	if o.Allowed { // the front may have a cell that has ended
		l.table.Remember(hash, r.cell, wins(r.after))
	}
	return o.Decision, err
}

// Peek returns the decision that Allow would return now. It takes nothing, adds no key and waits
// for no insert.
func (l *Limiter[K]) Peek(_ context.Context, key K) (tb.Decision, error) {
	t := l.clock.read()
	c, _ := l.table.Recent(key)
	return peek(l.placeOf(key), c, l.limits.layoutOf(c), t, &request{tokens: 1})
}

// Level returns how full key's bucket is now. It takes nothing, adds no key and waits for no
// insert.
func (l *Limiter[K]) Level(_ context.Context, key K) (tb.Level, error) {
	return level(l.placeOf(key), l.clock.read(), 0)
}

// Reset fills key's bucket, if the table has it, and forgives its debt. The key keeps its tier and
// its place in the table.
func (l *Limiter[K]) Reset(key K) {
	t, p := l.clock.read(), l.placeOf(key)
	visit(p, p.load(), t, func(m *layout, c *cell, _ balance) (balance, bool) {
		c.seal() // so that Cancel of an earlier grant gives nothing back
		return balance{time: m.supply.at(t)}, true
	})
}

// Len returns the number of keys in the table, never more than MaxKeys. It waits for inserts.
func (l *Limiter[K]) Len() int { return l.table.Len() }

// Stats returns the number of keys and the cost of eviction so far. It waits for inserts.
func (l *Limiter[K]) Stats() tb.Stats {
	if l.evictor == nil {
		panic(noLimit)
	}
	var s tb.Stats
	l.table.Pause(func(keys int) { s = l.evictor.stats(keys) })
	l.limits.addTo(&s)
	return s
}

// SetLimit makes limit the limit of all keys, or of tier 0 if there are several. It returns a
// *tb.ConfigError, and changes nothing, if the limit is out of range. To set the present limit
// again changes nothing. DESIGN.md §10 says how long the limiter remembers a limit.
func (l *Limiter[K]) SetLimit(limit tb.Limit) error { return l.SetTier(0, limit) }

// Limit returns the limit of all keys, or of tier 0 if there are several.
func (l *Limiter[K]) Limit() tb.Limit { return l.limits.present(0).limit }

// SetTier makes limit the limit of a tier, as SetLimit does for all keys. It returns a
// *tb.ConfigError, and changes nothing, if the limit or the tier is out of range.
func (l *Limiter[K]) SetTier(tier int, limit tb.Limit) error {
	if err := l.limits.checkTier(tier); err != nil {
		return err
	}
	stays := func(m *layout, _ uint64) *layout { return m }
	return l.limits.setLimit(l.limits.tier(tier), limit, l.clock.read, stays)
}

// Tiers returns the limits of all tiers. A limiter of New has one tier.
func (l *Limiter[K]) Tiers() []tb.Limit {
	limits := make([]tb.Limit, max(len(l.limits.tiers), 1))
	for i := range limits {
		limits[i] = l.limits.present(i).limit
	}
	return limits
}

// place is a key's place in the table of a limiter. It is the home of the key's bucket.
type place[K comparable] struct {
	*Limiter[K]
	key    K
	at     lru.Spot
	tier   int  // of a new bucket
	enters bool // the key enters the tier if it is in another one
}

// placeOf returns the place of key in the table, in the tier that it is in.
func (l *Limiter[K]) placeOf(key K) place[K] { return place[K]{Limiter: l, key: key} }

// isNaN reports whether key is a NaN or contains one. No table would find such a key again.
func isNaN[K comparable](key K) bool {
	return key != key // only a NaN differs from itself
}

func (p place[K]) load() *cell { return p.table.Load(p.key) }

func (p place[K]) layoutOf(c *cell) *layout {
	if c == nil || p.enters {
		return p.limits.present(p.tier)
	}
	return p.limits.layoutOf(c)
}

func (p place[K]) shared() *limits  { return &p.limits }
func (p place[K]) times() *clock    { return &p.clock }
func (p place[K]) entersTier() bool { return p.enters }

func (p place[K]) replace(old *cell, x content) *cell {
	return p.table.Replace(p.key, old, x.owner, func(next *cell) { next.init(x) })
}

func (p place[K]) insert(
	m *layout, t uint64, want request,
) (o result, r receipt, done bool, err error) {
	if isNaN(p.key) {
		return o, r, true, tb.ErrInvalidKey
	}
	e, w := p.evictor, &want // so that set captures no copies of p and want
	next, o := w.decide(m, balance{}, t)
	if !o.Allowed { // no bucket can ever grant it
		return o, r, true, nil
	}
	x, full := m.cellOf(next, t), m.fullAt(next)
	set := func(c *cell) uint64 {
		if start := e.earliest; start > t {
			var next balance
			next, o = w.decide(m, balance{time: m.supply.at(start)}, t)
			x, full = m.cellOf(next, t), m.fullAt(next)
		}
		c.init(x)
		return full
	}
	c, until, inserted := p.table.Insert(p.key, p.at, t, t-min(t, idleTime), x.owner, set)
	switch inserted {
	case lru.Found:
		return o, r, false, nil
	case lru.Refused:
		p.evictor.refused.Add(1)
		if want.until > 0 {
			err = tb.ErrTableFull
		}
		wait := m.timeTo(t, until)
		return result{Decision: tb.Decision{RetryAfter: wait}, delay: wait}, r, true, err
	}
	return o, receipt{cell: c, layout: m, after: x.word}, true, nil
}

func (p place[K]) refuses(m *layout, t uint64) (time.Duration, error) {
	if isNaN(p.key) {
		return 0, tb.ErrInvalidKey
	}
	until, refused := p.table.Refuses(t)
	if !refused {
		return 0, nil
	}
	return m.timeTo(t, until), nil
}
