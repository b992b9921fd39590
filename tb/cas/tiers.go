package cas

import (
	"fmt"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/tb"
)

// MaxTiers is the most tiers of a limiter.
const MaxTiers = 1 << tierBits

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
		m, err := newTier(i, limit, l.clock.firstInstant)
		if err != nil {
			return nil, err
		}
		l.limits.tiers[i].Store(m)
	}
	return l, nil
}

// newTier returns the first layout of a tier.
func newTier(tier int, limit tb.Limit, firstInstant uint64) (*layout, error) {
	if err := limit.Validate(); err != nil {
		return nil, fmt.Errorf("tier %d: %w", tier, err)
	}
	m := newLayout(limit)
	m.owner = uint64(tier)
	m.end = endOf(firstInstant)
	if per := uint64(limit.Per); per <= firstInstant {
		m.supply.from = firstInstant % per // the first reading is after whole periods
	}
	return &m, nil
}

// SetTier makes limit the limit of a tier, as SetLimit does for all keys. It returns a
// *tb.ConfigError, and changes nothing, if the limit or the tier is out of range.
func (l *Limiter[K]) SetTier(tier int, limit tb.Limit) error {
	if err := l.checkTier(tier); err != nil {
		return err
	}
	stays := func(m *layout, _ uint64) *layout { return m }
	return l.limits.setLimit(l.limits.tier(tier), limit, l.clock.read, stays)
}

// checkTier returns an error if the tier does not exist. A limiter of New has tier 0.
func (l *Limiter[K]) checkTier(tier int) error {
	if last := max(len(l.limits.tiers), 1) - 1; tier < 0 || tier > last {
		return &tb.ConfigError{Field: "tier", Value: tier, Range: fmt.Sprintf("0 to %d", last)}
	}
	return nil
}

// Tiers returns the limits of all tiers. A limiter of New has one tier.
func (l *Limiter[K]) Tiers() []tb.Limit {
	limits := make([]tb.Limit, max(len(l.limits.tiers), 1))
	for i := range limits {
		limits[i] = l.limits.present(i).limit
	}
	return limits
}
