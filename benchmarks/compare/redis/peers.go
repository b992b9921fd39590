package redis

import (
	"context"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislimiter"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"

	"github.com/seed-181794aa/ratelimit/tb"
)

// redisRate is GCRA in a script, with the server's time in floating-point seconds.
func redisRate(client *goredis.Client, limit tb.Limit) (allow, error) {
	l := redis_rate.NewLimiter(client)
	rate := redis_rate.Limit{
		Rate: int(limit.Tokens), Burst: limit.Capacity, Period: limit.Per,
	}
	return func(ctx context.Context, key string) (bool, error) {
		result, err := l.Allow(ctx, key, rate)
		return err == nil && result.Allowed > 0, err
	}, nil
}

// openRueidisLimiter counts in windows in a script, with the client's time and two keys for each
// key. A window has the length in which a bucket becomes full, so that the burst and the long-term
// rate are the bucket's. Up to twice the capacity is granted around the end of a window. A refusal
// writes, too.
func openRueidisLimiter(addr string, limit tb.Limit) (Limiter, error) {
	var client rueidis.Client
	l, err := rueidislimiter.NewRateLimiter(rueidislimiter.RateLimiterOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		ClientBuilder: func(option rueidis.ClientOption) (_ rueidis.Client, err error) {
			client, err = rueidis.NewClient(option)
			return client, err
		},
		Limit:  limit.Capacity,
		Window: time.Duration(float64(limit.Capacity) * float64(limit.Per) / float64(limit.Tokens)),
	})
	return Limiter{
		Allow: func(ctx context.Context, key string) (bool, error) {
			result, err := l.Allow(ctx, key)
			return result.Allowed, err
		},
		Close: func() { client.Close() },
	}, err
}

// throttledGCRA is GCRA in the client, with the server's time and a script that compares and swaps.
// The first grant of a key and its time to live are two commands. The time to live is rounded down
// to seconds. A call that loses ten swaps in a row returns an error.
func throttledGCRA(client *goredis.Client, limit tb.Limit) (allow, error) {
	store, err := goredisstore.NewCtx(client, "")
	if err != nil {
		return nil, err
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate:  throttled.PerDuration(int(limit.Tokens), limit.Per),
		MaxBurst: limit.Capacity - 1,
	})
	return func(ctx context.Context, key string) (bool, error) {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return err == nil && !limited, err
	}, err
}
