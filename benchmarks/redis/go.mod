module github.com/seed-181794aa/ratelimit/benchmarks/redis

go 1.25.0

require (
	github.com/go-redis/redis_rate/v10 v10.0.1
	github.com/redis/go-redis/v9 v9.22.0
	github.com/redis/rueidis v1.0.79
	github.com/redis/rueidis/rueidislimiter v1.0.67
	github.com/seed-181794aa/ratelimit v0.0.0
	github.com/seed-181794aa/ratelimit/tb/redis v0.0.0
	github.com/throttled/throttled/v2 v2.15.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/puzpuzpuz/xsync/v3 v3.5.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/seed-181794aa/ratelimit => ../..

replace github.com/seed-181794aa/ratelimit/tb/redis => ../../tb/redis
