package redis

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/tb"
	tbredis "github.com/seed-181794aa/ratelimit/tb/redis"
)

// lease is how long the tokens of a lease last.
const lease = 50 * time.Millisecond

// ours returns a function that opens a limiter of tb/redis.
func ours(opts ...tbredis.Option) func(addr string, limit tb.Limit) (Limiter, error) {
	return func(addr string, limit tb.Limit) (Limiter, error) {
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true,
		})
		if err != nil {
			return Limiter{}, err
		}
		l, err := tbredis.New(client, limit, append(opts, tbredis.WithTimeout(time.Minute))...)
		if err != nil {
			client.Close()
			return Limiter{}, err
		}
		allow := func(ctx context.Context, key string) (bool, error) {
			o, err := l.Decide(ctx, key, 1)
			if err == nil && o.Failure != nil {
				err = o.Failure
			}
			return o.Allowed, err
		}
		return Limiter{
			Allow: allow, Close: func() { l.Close(); client.Close() },
			Abandoned: func() int { return int(l.Stats().Abandoned) },
		}, nil
	}
}
