// Package peers adapts other Go limiters to the benchmarks. Each adapter has a file, whose
// comments say how the limiter differs from package tb. The tests run
// tb/tbtest on the limiters that accept a clock: see docs/peers.md.
package peers

import (
	"time"

	"github.com/seed-181794aa/ratelimit/benchmarks"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Peers are the contenders.
var Peers = []benchmarks.Contender{
	{Name: "xtime-syncmap", New: xtimeSyncMap, Skip: unbounded},
	{Name: "xtime-lru", New: xtimeLRU},
	{Name: "throttled", New: throttledMem},
	{Name: "ulule", New: ululeMem, Skip: unbounded},
	{Name: "httprate", New: httprateLocal, Skip: unbounded},
}

// unbounded skips the workload that a limiter without a bound cannot have.
func unbounded(w benchmarks.Workload) bool { return w.Load == "new" }

// perSecond returns the rate of limit in tokens per second.
func perSecond(limit tb.Limit) float64 { return float64(limit.Tokens) / limit.Per.Seconds() }

// window returns the time in which limit refills an empty bucket. A limiter that counts in
// windows gets the capacity for each window of this length. Its burst and its long-term
// rate are then the same.
func window(limit tb.Limit) time.Duration {
	return time.Duration(float64(limit.Capacity) * float64(limit.Per) / float64(limit.Tokens))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
