module github.com/seed-181794aa/ratelimit/tb/redis

go 1.25.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/puzpuzpuz/xsync/v3 v3.5.1
	github.com/redis/rueidis v1.0.79
	github.com/seed-181794aa/ratelimit v0.0.0
	go.uber.org/goleak v1.3.0
)

require golang.org/x/sys v0.47.0 // indirect

replace github.com/seed-181794aa/ratelimit => ../..
