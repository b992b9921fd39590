package migrate

import (
	"context"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

var _ = []any{redisRateHere, redisRateTable}

func redisRateHere(
	client rueidis.Client, limit ratelimit.Limit, failure redis.Policy, timeout time.Duration,
) (*redis.Limiter, error) {
	return redis.New(client, limit, redis.WithPrefix("mail:"),
		redis.WithPolicy(failure), redis.WithTimeout(timeout))
}

func redisRateTable(
	ctx context.Context, rates *redis_rate.Limiter, limiter *redis.Limiter, key string,
	limit redis_rate.Limit,
) []any {
	result, _ := rates.Allow(ctx, key, redis_rate.PerHour(10))
	rates.AllowN(ctx, key, limit, 6)
	rates.Reset(ctx, key)
	limiter.AllowN(ctx, key, 6)
	limiter.Reset(ctx, key)
	level, _ := limiter.Level(ctx, key)
	d, _ := limiter.Allow(ctx, key)
	return []any{result.Allowed > 0, d.Allowed, result.ResetAfter, level.Full}
}
