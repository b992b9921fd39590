package migrate

import (
	"context"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

var _ = []any{redisRateBefore, redisRateAfter, redisRateTable}

func redisRateBefore(address string) *redis_rate.Limiter {
	client := goredis.NewClient(&goredis.Options{Addr: address})
	rates := redis_rate.NewLimiter(client)
	return rates
}

func redisRateAfter(address string, failure redis.Policy, timeout time.Duration) (
	*redis.Limiter, rueidis.Client, error,
) {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{address}, DisableCache: true, ForceSingleClient: true,
	})
	if err != nil {
		return nil, nil, err
	}
	limit := ratelimit.Limit{Capacity: 10, Tokens: 10, Per: time.Hour}
	limiter, err := redis.New(client, limit, redis.WithPrefix("mail:"),
		redis.WithPolicy(failure), redis.WithTimeout(timeout))
	return limiter, client, err
}

func redisRateTable(
	ctx context.Context, rates *redis_rate.Limiter, limiter *redis.Limiter, key string,
	limit redis_rate.Limit,
) []any {
	result, err := rates.Allow(ctx, key, redis_rate.PerHour(10))
	rates.AllowN(ctx, key, limit, 6)
	rates.Reset(ctx, key)
	limiter.AllowN(ctx, key, 6)
	limiter.Reset(ctx, key)
	level, _ := limiter.Level(ctx, key)
	if err == nil {
		d, err := limiter.Allow(ctx, key)
		return []any{result.Allowed > 0, d.Allowed, result.ResetAfter, level.Full, err}
	}
	return nil
}
