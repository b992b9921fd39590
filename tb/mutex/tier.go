package mutex

import (
	"math/big"
	"math/bits"

	"github.com/seed-181794aa/ratelimit/tb"
)

// tier is the limit of some keys, or of all, and the limits that it had before. An era ends when
// the capacity changes.
type tier struct {
	eras []limit  // the last limit of each era
	ends []uint64 // the instants at which the eras before the last one ended
}

func newTier(l limit) *tier { return &tier{eras: []limit{l}} }

// limit returns the limit of the tier.
func (t *tier) limit() *limit { return &t.eras[len(t.eras)-1] }

// inherited returns what b has under the present limit.
func (t *tier) inherited(b state) state {
	for b.era < len(t.eras)-1 {
		b = t.eras[b.era+1].inherit(&t.eras[b.era], b, t.ends[b.era])
	}
	return b
}

// tier returns the tier of a key.
func (l *Limiter[K]) tier(key K) *tier { return l.tiers[l.tierOf(key)] }

// seen returns the state of b at now, under the present limit.
func (l *Limiter[K]) seen(b *bucket[K], now uint64) *state {
	s := l.tier(b.key).inherited(b.state)
	return &s
}

// SetLimit makes limit the limit of all keys. Each bucket keeps its tokens, but not more than the
// new capacity, and its debt. It returns a *tb.ConfigError if the limit is out of range.
func (l *Limiter[K]) SetLimit(limit tb.Limit) error {
	if err := limit.Validate(); err != nil {
		return err
	}
	now := l.read()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tiers[0].set(limit, now)
	for _, b := range l.buckets {
		l.rank(b)
	}
	return nil
}

// Limit returns the limit of all keys.
func (l *Limiter[K]) Limit() tb.Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tiers[0].limit().Limit
}

func (t *tier) set(limit tb.Limit, now uint64) {
	old := t.limit()
	now = max(now, old.from)
	next := newLimit(limit, old.end)
	next.start = old.supply(now)
	next.from = now - min(now, old.carried(&next, now))
	next.blockBits = max(next.blockBits, old.blockBits)
	if next.Capacity == old.Capacity && next.blockBits == old.blockBits {
		next.era = old.era
		*old = next
		return
	}
	next.blockBits = bits.Len64(next.wholeRate())
	next.era = old.era + 1
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
