// Package peers holds other Go limiters as contenders of the benchmarks, each with
// what makes it not quite the same thing.
package peers

import (
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/seed-181794aa/ratelimit/benchmarks"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Peers are the contenders.
var Peers = []benchmarks.Contender{
	{Name: "xtime-syncmap", New: newSyncMap, Skip: unbounded},
	{Name: "xtime-lru", New: newLRU},
}

// unbounded says which workloads make no sense without a bound.
func unbounded(w benchmarks.Workload) bool { return w.Load == "new" }

func newLimiter(l tb.Limit) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(float64(l.Tokens)/l.Per.Seconds()), l.Capacity)
}

// newSyncMap is x/time/rate in a sync.Map: the usual way to give it keys. The map has
// no bound, and nothing says how long to wait after a refusal.
func newSyncMap(limit tb.Limit, _ int) func(string) bool {
	var m sync.Map
	return func(key string) bool {
		l, ok := m.Load(key)
		if !ok {
			l, _ = m.LoadOrStore(key, newLimiter(limit))
		}
		return l.(*rate.Limiter).Allow()
	}
}

// newLRU is x/time/rate in a golang-lru: bounded, with one lock around the table on
// every call, and a key that was evicted starts with a fresh burst.
func newLRU(limit tb.Limit, maxKeys int) func(string) bool {
	m, err := lru.New[string, *rate.Limiter](maxKeys)
	if err != nil {
		panic(err)
	}
	return func(key string) bool {
		l, ok := m.Get(key)
		if !ok {
			l = newLimiter(limit)
			if first, found, _ := m.PeekOrAdd(key, l); found {
				l = first
			}
		}
		return l.Allow()
	}
}
