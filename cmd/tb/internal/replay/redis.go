package replay

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// redisLimiter is a limiter with its buckets in Redis, at the time of the log.
type redisLimiter struct {
	*redis.Replay
	per   time.Duration // of the limit
	now   func() time.Time
	shift time.Duration // from the time of the log to the time of the buckets; 0 before the first call
}

// newRedisLimiter returns a limiter with keys that no other process has.
func newRedisLimiter(
	client rueidis.Client, limit tb.Limit, now func() time.Time,
) (*redisLimiter, error) {
	r, err := redis.NewReplay(client, limit, "tb-replay:"+rand.Text()+":")
	if err != nil {
		return nil, err
	}
	return &redisLimiter{Replay: r, per: limit.Per, now: now}, nil
}

// AllowCost shifts the first request of the log to a whole number of periods after 1970. Then a
// bucket has as many units at each time as in cas and mutex, which count from the first request.
func (l *redisLimiter) AllowCost(
	ctx context.Context, key string, cost float64,
) (tb.Decision, error) {
	now := l.now()
	if l.shift == 0 {
		l.shift = l.per - time.Duration(now.UnixNano())%l.per
	}
	return l.AllowCostAt(ctx, now.Add(l.shift), key, cost)
}

// Stats returns nothing: no bucket is evicted.
func (l *redisLimiter) Stats() tb.Stats { return tb.Stats{} }

// removalTimeout is how long the removal of the keys may take, also after an interrupt.
const removalTimeout = 30 * time.Second

// close removes the keys of a limiter from Redis.
func (l *redisLimiter) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalTimeout)
	defer cancel()
	return l.Remove(ctx)
}
