package redis

import (
	"context"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Store makes the limiters of the rules of a policy: it is a Store of package httplimit. All
// enforced rules that apply to a request are then decided as by TakeAll: all or none, and on one
// server by one command. So its limiters have the breaker in common, and the statistics of the
// server.
type Store struct {
	client rueidis.Client
	prefix string
	opts   []Option
}

// NewStore returns a store whose limiters have these options. The failure policy is Fail unless an
// option sets another, so that the caller of TakeAll decides. NewStore sends nothing to Redis.
func NewStore(client rueidis.Client, opts ...Option) (*Store, error) {
	shared := new(link)
	opts = append([]Option{WithPolicy(Fail), {set: func(s *settings) { s.link = shared }}}, opts...)
	s, err := apply(opts)
	return &Store{client, s.prefix, opts}, err
}

// Limiters returns a limiter for each of the limits of a rule, on the same buckets: see
// Limiter.Tier. Their names begin with the prefix of the store, the name of the rule and a colon.
// Processes that name a rule alike share its buckets.
func (s *Store) Limiters(rule string, limits []tb.Limit) ([]tb.StoreLimiter, error) {
	prefix := WithPrefix(s.prefix + rule + ":")
	first, err := New(s.client, limits[0], append(slices.Clip(s.opts), prefix)...)
	if err != nil {
		return nil, err
	}
	all := []tb.StoreLimiter{first}
	for _, limit := range limits[1:] {
		l, err := first.Tier(limit)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// TakeAll is the function TakeAll.
func (*Store) TakeAll(
	ctx context.Context, t time.Time, charges []tb.Charge, buf []tb.Decision,
) (decisions []tb.Decision, allowed bool, err error) {
	return TakeAll(ctx, t, charges, buf)
}
