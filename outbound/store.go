package outbound

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Store has the buckets. *redis.Store of package tb/redis is one that several processes share.
type Store interface {
	// Limiters returns limiters of the buckets of a rule, as httplimit.Store says. Each of them has
	// the method Hold(ctx context.Context, key string, until time.Time) error, with which nothing is
	// granted on the key before until. Then its bucket is empty, and is refilled. It is called once
	// for a rule with a Limit, and otherwise for each key. limits has one element. The Level of a
	// charge that was taken is the level of then.
	Limiters(rule string, limits []tb.Limit) ([]tb.StoreLimiter, error)
	// TakeAll is tb.TakeAll for charges of these limiters.
	TakeAll(ctx context.Context, t time.Time, charges []tb.Charge, buf []tb.Decision) (
		decisions []tb.Decision, allowed bool, err error)
}

// limiter is what a Store returns.
type limiter interface {
	tb.StoreLimiter
	Hold(ctx context.Context, key string, until time.Time) error
}

func newLimiter(s Store, rule string, limit tb.Limit) (limiter, error) {
	all, err := s.Limiters(rule, []tb.Limit{limit})
	if err != nil {
		return nil, err
	}
	if len(all) == 1 {
		if l, ok := all[0].(limiter); ok {
			return l, nil
		}
	}
	return nil, fmt.Errorf("outbound: the store %T returns no limiter with the method Hold", s)
}

// memory is the Store in the memory of the process.
type memory struct{}

type memoryLimiter struct{ *cas.Limiter[string] }

func (memory) Limiters(_ string, limits []tb.Limit) ([]tb.StoreLimiter, error) {
	l, err := cas.New[string](limits[0])
	return []tb.StoreLimiter{memoryLimiter{l}}, err
}

func (memory) TakeAll(
	_ context.Context, t time.Time, charges []tb.Charge, buf []tb.Decision,
) (decisions []tb.Decision, allowed bool, err error) {
	return tb.TakeAll(t, charges, buf)
}

// Charge implements tb.StoreLimiter.
func (l memoryLimiter) Charge(key string, cost float64) (tb.StoreCharge, error) {
	c, err := l.Limiter.Charge(key, cost)
	return &c, err
}
