package mutex

import (
	"fmt"
	"math"
	"math/big"

	"github.com/seed-181794aa/ratelimit/tb"
)

// tier is the limit of some keys, or of all, and the limits that it had before. Each change ends an
// era.
type tier struct {
	eras []limit
	ends []uint64 // the instants at which the eras before the last one ended
}

func newTier(l limit) *tier { return &tier{eras: []limit{l}} }

// limit returns the limit of the tier.
func (t *tier) limit() *limit { return &t.eras[len(t.eras)-1] }

// inherited returns what b, of an era that has ended, has under the present limit.
func (t *tier) inherited(b *state) state {
	last := len(t.eras) - 1
	tokens, since := t.eras[b.era].tokensAt(b, t.ends[b.era])
	for i := b.era + 1; i < last; i++ {
		l := &t.eras[i]
		tokens = min(tokens, l.micros(l.capacity))
		if end := t.ends[i]; since <= end {
			gain := l.supply(end).minus(l.supplyFrom(since)).clamp(mostSettled / millionths * l.scale)
			tokens = min(tokens+l.micros(gain), l.micros(l.capacity))
			since = end
		}
	}
	s := t.eras[last].stateWith(tokens, t.eras[last].supplyFrom(since))
	s.moves = b.moves + 1
	return s
}

// tier returns the tier of a key: the one that a call names, which is asked-1, or the tier of the
// key's bucket. If that is nil, it is tier 0, or -asked-1 for a call that makes a bucket in that
// tier and leaves another where it is.
func (l *Limiter[K]) tier(b *bucket[K], asked int) *tier {
	switch {
	case asked > 0:
		return l.tiers[asked-1]
	case b != nil:
		return l.tiers[b.tier]
	}
	return l.tiers[max(-asked-1, 0)]
}

// own returns the tier that b's state is of, and the state under the present limit of that tier.
// It is b's own, unless its era has ended.
func (l *Limiter[K]) own(b *bucket[K]) (*tier, *state) {
	t := l.tiers[b.tier]
	if b.era == len(t.ends) {
		return t, &b.state
	}
	s := t.inherited(&b.state)
	return t, &s
}

// seen returns the state of b under the present limit of m, its tier now. A bucket of another tier
// gets what its own tier has supplied by now.
func (l *Limiter[K]) seen(b *bucket[K], m *tier, now uint64) *state {
	if l.tiers[b.tier] == m && b.era == len(m.ends) {
		return &b.state
	}
	return l.moved(b, m, now)
}

// moved is seen for a bucket of another tier or era.
func (l *Limiter[K]) moved(b *bucket[K], m *tier, now uint64) *state {
	t, s := l.own(b)
	if m == t {
		return s
	}
	entered := m.limit().inherit(t.limit(), s, now)
	return &entered
}

// NewTiered returns a limiter whose keys have different limits. ChargeIn names the tier of a key.
func NewTiered[K comparable](
	limits []tb.Limit, opts ...tb.Option,
) (*Limiter[K], error) {
	if len(limits) < 1 || len(limits) > 1<<16 {
		return nil, &tb.ConfigError{Field: "limits", Value: len(limits), Range: "1 to 65536"}
	}
	l, err := New[K](limits[0], opts...)
	if err != nil {
		return nil, err
	}
	l.tiers = nil
	for i, limit := range limits {
		if err := limit.Validate(); err != nil {
			return nil, err
		}
		m := newLimit(limit, l.firstInstant+math.MaxInt64)
		m.tier = i
		if m.per <= l.firstInstant {
			m.from = l.firstInstant % m.per // the first reading is after whole periods
		}
		l.tiers = append(l.tiers, newTier(m))
	}
	return l, nil
}

// SetTier makes limit the limit of a tier, as SetLimit does for all keys.
func (l *Limiter[K]) SetTier(tier int, limit tb.Limit) error {
	if err := l.checkTier(tier); err != nil {
		return err
	}
	if err := limit.Validate(); err != nil {
		return err
	}
	now := l.read()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tiers[tier].set(limit, now)
	for _, b := range l.buckets {
		l.rank(b)
	}
	return nil
}

// Tiers returns the limits of all tiers. A limiter of New has one tier.
func (l *Limiter[K]) Tiers() []tb.Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	limits := make([]tb.Limit, len(l.tiers))
	for i, t := range l.tiers {
		limits[i] = t.limit().Limit
	}
	return limits
}

// checkTier returns an error if there is no such tier.
func (l *Limiter[K]) checkTier(tier int) error {
	if last := len(l.tiers) - 1; tier < 0 || tier > last {
		return &tb.ConfigError{Field: "tier", Value: tier, Range: fmt.Sprintf("0 to %d", last)}
	}
	return nil
}

// SetLimit makes limit the limit of all keys, or of tier 0 if there are several. Each bucket keeps
// its tokens, but not more than the new capacity, and its debt. It returns a *tb.ConfigError if the
// limit is out of range.
func (l *Limiter[K]) SetLimit(limit tb.Limit) error { return l.SetTier(0, limit) }

// Limit returns the limit of all keys, or of tier 0 if there are several.
func (l *Limiter[K]) Limit() tb.Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tiers[0].limit().Limit
}

func (t *tier) set(limit tb.Limit, now uint64) {
	old := t.limit()
	if limit == old.Limit {
		return
	}
	now = max(now, old.begin)
	next := newLimit(limit, old.end)
	next.tier, next.era = old.tier, old.era+1
	next.begin = now
	next.from = now - min(now, old.carried(&next, now))
	t.eras = append(t.eras, next)
	t.ends = append(t.ends, now)
}

// carried returns the nanoseconds in which next supplies the fraction of a unit that l has
// supplied at now beyond whole units.
func (l *limit) carried(next *limit, now uint64) uint64 {
	perNano := func(l *limit) *big.Rat {
		r := new(big.Rat).SetFrac(new(big.Int).SetUint64(l.tokens), new(big.Int).SetUint64(l.per))
		return r.Mul(r, big.NewRat(l.scale, 1))
	}
	supplied := new(big.Rat).SetInt(new(big.Int).SetUint64(now - min(now, l.from)))
	supplied.Mul(supplied, perNano(l))
	whole := new(big.Int).Quo(supplied.Num(), supplied.Denom())
	fraction := supplied.Sub(supplied, new(big.Rat).SetInt(whole))
	fraction.Mul(fraction, big.NewRat(next.scale, l.scale))
	fraction.Quo(fraction, perNano(next))
	return new(big.Int).Quo(fraction.Num(), fraction.Denom()).Uint64()
}
