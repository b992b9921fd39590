package httplimit

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Memory returns a Store that has a table of tb/cas for each rule, in this process. The options are
// of the tables. A Limiter without WithStore has a Memory with the options of WithLimiterOptions.
func Memory(opts ...tb.Option) Store { return memory(opts) }

type memory []tb.Option

// Limiters implements Store. It makes a new table in each call, whatever the name of the rule is.
func (m memory) Limiters(_ string, limits []tb.Limit) (all []tb.StoreLimiter, err error) {
	var table *cas.Limiter[string]
	if len(limits) == 1 {
		table, err = cas.New[string](limits[0], m...)
	} else {
		table, err = cas.NewTiered[string](limits, m...)
	}
	for i := range limits {
		all = append(all, &memoryLimiter{table, i, len(limits) > 1})
	}
	return all, err
}

// TakeAll implements Store. It returns no error.
func (memory) TakeAll(
	_ context.Context, t time.Time, charges []tb.Charge, buf []tb.Decision,
) (decisions []tb.Decision, allowed bool, err error) {
	return tb.TakeAll(t, charges, buf)
}

// memoryLimiter is a tier of a table.
type memoryLimiter struct {
	*cas.Limiter[string]
	tier   int
	tiered bool // the table has several tiers
}

// Charge returns a charge on key's bucket, which moves to the tier.
func (l *memoryLimiter) Charge(key string, cost float64) (tb.StoreCharge, error) {
	c, err := l.ChargeIn(l.tier, key, cost)
	return &c, err
}

// charge is Charge in a place of the caller, for a valid cost.
func (l *memoryLimiter) charge(c *cas.Charge[string], key string, cost float64) {
	if l.tiered {
		*c, _ = l.ChargeIn(l.tier, key, cost)
	} else {
		*c, _ = l.Limiter.Charge(key, cost)
	}
}

// SetLimit sets the limit of the tier.
func (l *memoryLimiter) SetLimit(limit tb.Limit) error { return l.SetTier(l.tier, limit) }

// Limit returns the limit of the tier.
func (l *memoryLimiter) Limit() tb.Limit { return l.Tiers()[l.tier] }
