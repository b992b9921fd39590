package migrate

import (
	"context"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

func beforeRedisRate(address string) (*redis_rate.Limiter, *goredis.Client) {
	client := goredis.NewClient(&goredis.Options{Addr: address})
	rates := redis_rate.NewLimiter(client)
	return rates, client
}

func afterRedisRate(address string, failure redis.Policy, timeout time.Duration) (
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

// redisPair is both limiters with one server.
type redisPair struct {
	server *redistest.Server
	before *redis_rate.Limiter
	after  *redis.Limiter
}

func newRedisPair(t *testing.T, failure redis.Policy) redisPair {
	t.Helper()
	p := redisPair{server: redistest.Start(t)}
	var goClient *goredis.Client
	p.before, goClient = beforeRedisRate(p.server.Addr)
	// No policy decides because the machine is busy.
	after, client, err := afterRedisRate(p.server.Addr, failure, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	p.after = after
	t.Cleanup(func() {
		after.Close()
		client.Close()
		_ = goClient.Close()
	})
	return p
}

// allow makes a call of each limiter.
func (p redisPair) allow(ctx context.Context, key string) (before, after bool, err error) {
	rates, limiter := p.before, p.after
	result, err := rates.Allow(ctx, key, redis_rate.PerHour(10))
	if err != nil {
		return false, false, err
	}
	d, err := limiter.Allow(ctx, key)
	return result.Allowed > 0, d.Allowed, err
}

// TestRedisRateCalls runs both columns of the table.
func TestRedisRateCalls(t *testing.T) {
	p := newRedisPair(t, redis.Refuse)
	ctx, key, limit := t.Context(), "ada", redis_rate.PerHour(10)
	rates, limiter := p.before, p.after

	result, err := rates.AllowN(ctx, key, limit, 6)
	if err != nil {
		t.Fatal(err)
	}
	d, err := limiter.AllowN(ctx, key, 6)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "AllowN", result.Allowed > 0, true, d.Allowed, true)
	wants(t, "remaining", result.Remaining, 4, d.Remaining, 4)
	level, err := limiter.Level(ctx, key)
	if err != nil || (result.ResetAfter-level.Full).Abs() > time.Minute {
		t.Errorf("full after %v before and %v after, %v", result.ResetAfter, level.Full, err)
	}

	// A part of a cost is never taken after.
	result, err = rates.AllowAtMost(ctx, key, limit, 6)
	if err != nil {
		t.Fatal(err)
	}
	d, err = limiter.AllowN(ctx, key, 6)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "AllowAtMost", result.Allowed, 4, d.Remaining, 4)

	wants(t, "Reset", rates.Reset(ctx, key), nil, limiter.Reset(ctx, key), nil)
	before, after, err := p.allow(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "after Reset", before, true, after, true)
}
