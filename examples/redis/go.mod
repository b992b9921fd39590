module github.com/seed-181794aa/ratelimit/examples/redis

go 1.25.0

require (
	github.com/redis/rueidis v1.0.79
	github.com/seed-181794aa/ratelimit v0.0.0
	github.com/seed-181794aa/ratelimit/tb/redis v0.0.0
)

require (
	github.com/puzpuzpuz/xsync/v3 v3.5.1 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/seed-181794aa/ratelimit => ../..

replace github.com/seed-181794aa/ratelimit/tb/redis => ../../tb/redis
