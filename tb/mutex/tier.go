package mutex

import (
	"cmp"
	"fmt"

	"github.com/seed-181794aa/ratelimit/tb"
)

// in returns the state of a bucket at now under m, which is the present limit of its tier, or of a
// tier that it enters.
func (s *state) in(m *limit, now uint64) *state {
	if s.until > max(now, m.begin) {
		held := s.heldIn(m)
		held.hold = s.hold
		return held
	}
	own := s.present()
	if own.limit != m { // the bucket gets what its own tier has supplied by now
		return m.inherit(own, max(now, s.until))
	}
	return own
}

// present returns the state under the present limit of the bucket's tier.
func (s *state) present() *state {
	l := s.limit
	if s.until > 0 {
		for l.next != nil && l.next.begin < s.until { // to the limit at the end of the hold
			l = l.next
		}
		s = s.heldIn(l)
	}
	if l.next == nil {
		return s
	}
	tokens, since := l.tokensAt(s, l.next.begin)
	for l = l.next; l.next != nil; l = l.next {
		tokens = min(tokens, l.micros(l.capacity))
		if end := l.next.begin; since <= end {
			gain := l.supply(end).above(l.supplyFrom(since), 2*deepestDebt*l.scale)
			tokens = min(tokens+l.micros(gain), l.micros(l.capacity))
			since = end
		}
	}
	now := l.stateWith(tokens, l.supplyFrom(since))
	now.moves = s.moves + 1
	return now
}

// SetTier makes limit the limit of a tier, as SetLimit does for all keys.
func (l *Limiter[K]) SetTier(tier int, limit tb.Limit) error {
	if err := cmp.Or(l.checkTier(tier), limit.Validate()); err != nil {
		return err
	}
	now := l.read()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tiers[tier] = l.tiers[tier].change(limit, now)
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
	for i, m := range l.tiers {
		limits[i] = m.Limit
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

// SetLimit makes limit the limit of all keys, or of tier 0 if there are several.
func (l *Limiter[K]) SetLimit(limit tb.Limit) error { return l.SetTier(0, limit) }

// Limit returns the limit of all keys, or of tier 0 if there are several.
func (l *Limiter[K]) Limit() tb.Limit { return l.Tiers()[0] }

// change ends l at now, and returns the limit that follows it.
func (l *limit) change(limit tb.Limit, now uint64) *limit {
	if limit == l.Limit {
		return l
	}
	next := newLimit(limit, l.end)
	next.tier, next.begin = l.tier, max(now, l.begin)
	next.from = next.begin - min(next.begin, l.carried(next, next.begin))
	l.next = next
	return next
}

// carried returns the nanoseconds in which next supplies the fraction of a unit that l has
// supplied at now beyond whole units.
func (l *limit) carried(next *limit, now uint64) uint64 {
	_, rest := product(now-min(now, l.from), l.tokens).over(l.per)
	_, rest = product(rest, uint64(l.scale)).over(l.per) // of which a unit has per
	ns, _ := product(rest, next.per).over(l.per)
	return ns / uint64(l.scale) / next.tokens
}
