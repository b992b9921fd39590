package benchmarks

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// BenchmarkHits measures calls on known keys. scripts/hits runs it on this tree and on an older
// one, so it and the files without tests of this package use only what both have.
func BenchmarkHits(b *testing.B) {
	suites := [][]Workload{
		cross(Workload{Load: "grant", Keys: 1, Limit: generous}, []int{1}, "uniform"),
		cross(Workload{Load: "refuse", Keys: 1, Limit: daily}, []int{1, 64}, "uniform"),
		cross(Workload{Load: "grant", Keys: 1_000, Limit: generous}, []int{64}, "uniform"),
	}
	if !testing.Short() {
		suites = append(suites,
			cross(Workload{Load: "grant", Keys: 100_000, Limit: generous}, []int{1}, "uniform"),
			cross(Workload{Load: "grant", Keys: 1_000_000, Limit: generous}, []int{1}, "uniform"))
	}
	several := func(w Workload) bool { return w.Keys > 1 || w.Par > 1 }
	run(b, []Contender{
		{"floor", newFloor, nil},
		{"cas", newCAS, nil},
		{"cas-at", newCASAt, several},
		{"cas-coarse", newCASCoarse, several},
		{"mutex", newMutex, several},
	}, suites)
}

// newCASAt returns cas for a caller that has the time.
func newCASAt(limit tb.Limit, maxKeys int) func(string) bool {
	l := must(cas.New[string](limit, tb.WithMaxKeys(maxKeys)))
	now := time.Now()
	return func(key string) bool { d, err := l.AllowAt(now, key, 1); return err == nil && d.Allowed }
}

// newCASCoarse returns cas with a clock that is set each millisecond.
func newCASCoarse(limit tb.Limit, maxKeys int) func(string) bool {
	clock := tb.WithClock(func() time.Time { return *coarse().Load() })
	l := must(cas.New[string](limit, tb.WithMaxKeys(maxKeys), clock))
	ctx := context.Background()
	return func(key string) bool { d, err := l.Allow(ctx, key); return err == nil && d.Allowed }
}

// coarse returns the time of the last tick.
var coarse = sync.OnceValue(func() *atomic.Pointer[time.Time] {
	last, now := new(atomic.Pointer[time.Time]), time.Now()
	last.Store(&now)
	go func() {
		for range time.Tick(time.Millisecond) {
			now := time.Now()
			last.Store(&now)
		}
	}()
	return last
})
