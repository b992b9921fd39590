// Package peers holds other Go limiters as contenders of the benchmarks, each in a file
// of its own with what makes it not quite the same thing, and checks them against the
// contract of package tb: see docs/peers.md.
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
	{Name: "sethvargo", New: sethvargoMem, Skip: unbounded},
	{Name: "ulule", New: ululeMem, Skip: unbounded},
	{Name: "juju-syncmap", New: jujuSyncMap, Skip: unbounded},
	{Name: "uber-syncmap", New: uberSyncMap, Skip: blocking},
	{Name: "httprate", New: httprateLocal, Skip: unbounded},
}

// unbounded says which workloads make no sense without a bound.
func unbounded(w benchmarks.Workload) bool { return w.Load == "new" }

// blocking says which workloads make no sense for a limiter that waits instead of
// refusing.
func blocking(w benchmarks.Workload) bool { return w.Load != "grant" }

// perSecond is the rate of limit in tokens a second.
func perSecond(limit tb.Limit) float64 { return float64(limit.Tokens) / limit.Per.Seconds() }

// interval is the time in which limit refills one token, in whole nanoseconds.
func interval(limit tb.Limit) time.Duration { return limit.Per / time.Duration(limit.Tokens) }

// window is the time in which limit refills an empty bucket. A limiter that counts in
// windows gets the capacity for each window of this length, which has the same burst and
// the same rate in the long run.
func window(limit tb.Limit) time.Duration {
	return time.Duration(float64(limit.Capacity) * float64(limit.Per) / float64(limit.Tokens))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
