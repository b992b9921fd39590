module github.com/seed-181794aa/ratelimit/grpclimit

go 1.26.0

require (
	github.com/redis/rueidis v1.0.79
	github.com/seed-181794aa/ratelimit v0.0.0
	github.com/seed-181794aa/ratelimit/tb/redis v0.0.0
	go.uber.org/goleak v1.3.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/puzpuzpuz/xsync/v3 v3.5.1 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/seed-181794aa/ratelimit => ..

replace github.com/seed-181794aa/ratelimit/tb/redis => ../tb/redis
