// Package redis compares limiters that keep their buckets in Redis: three ways to write a
// token bucket in Go, and other Go limiters. The benchmarks start a redis-server of their own.
// scripts/bench-redis runs them in interleaved rounds.
package redis

import (
	"context"

	goredis "github.com/redis/go-redis/v9"

	"github.com/seed-181794aa/ratelimit/tb"
	tbredis "github.com/seed-181794aa/ratelimit/tb/redis"
)

// Contender is a limiter to measure.
type Contender struct {
	Name string // as in impl=Name
	// Open returns a limiter whose buckets are in the Redis at addr.
	Open func(addr string, limit tb.Limit) (Limiter, error)
	// Trips are the commands that make a round trip each, and Riders the commands that are sent
	// in the same round trips, as INFO commandstats names them. Commands that a script or a
	// transaction calls are in neither.
	Trips, Riders []string
	// Exact limiters grant all that a bucket allows and nothing more. The others have a comment.
	Exact bool
	// GivesUp reports that a call may return an error only because other calls are under way.
	GivesUp bool
}

// Limiter is an open limiter.
type Limiter struct {
	Allow allow
	Close func()
	// Abandoned returns how many grants came after their callers had left. It may be nil.
	Abandoned func() int
}

// ourTrips are the commands of tb/redis.
var ourTrips = []string{"evalsha", "eval"}

// Contenders are the limiters to compare.
var Contenders = []Contender{
	{
		Name: "tb-plain", Open: ours(tbredis.WithoutBatching(), tbredis.WithMaxDenial(0)),
		Trips: ourTrips, Exact: true, GivesUp: true, // beyond 256 trips under way
	},
	{Name: "tb-shared", Open: ours(tbredis.WithMaxDenial(0)), Trips: ourTrips, Exact: true},
	{Name: "tb", Open: ours(), Trips: ourTrips, Exact: true}, // shared trips and local refusals
	{ // loses what is not spent
		Name: "tb-lease", Open: ours(tbredis.WithLease(lease)), Trips: ourTrips,
	},
	{Name: "lua-evalsha", Open: goRedis(lua), Trips: []string{"evalsha"}, Exact: true},
	{Name: "multi-cmd", Open: goRedis(multiCmd), Trips: []string{"hmget", "hset", "pexpire"}},
	{
		Name: "watch", Open: goRedis(watch), Exact: true, GivesUp: true,
		Trips: []string{"watch", "hmget", "exec", "unwatch"}, Riders: []string{"multi"},
	},
	{Name: "redis_rate", Open: goRedis(redisRate), Trips: []string{"evalsha"}, Exact: true},
	{Name: "rueidislimiter", Open: openRueidisLimiter, Trips: []string{"evalsha"}},
	{
		Name: "throttled", Open: goRedis(throttledGCRA), GivesUp: true,
		Trips: []string{"time", "setnx", "expire", "eval"}, Riders: []string{"get"},
	},
}

// connections is the size of go-redis' pool: a connection for each of 64 goroutines.
const connections = 64

// allow takes one token of a key.
type allow func(ctx context.Context, key string) (granted bool, err error)

// goRedis returns a function that opens a limiter with a client of its own.
func goRedis(
	over func(*goredis.Client, tb.Limit) (allow, error),
) func(addr string, limit tb.Limit) (Limiter, error) {
	return func(addr string, limit tb.Limit) (Limiter, error) {
		client := goredis.NewClient(&goredis.Options{Addr: addr, PoolSize: connections})
		allow, err := over(client, limit)
		return Limiter{Allow: allow, Close: func() { _ = client.Close() }}, err
	}
}
