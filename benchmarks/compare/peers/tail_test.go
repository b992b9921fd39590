package peers

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/seed-181794aa/ratelimit/benchmarks"
	"github.com/seed-181794aa/ratelimit/tb"
)

// BenchmarkTail times single calls: nine hits for each new key, and the new key evicts another from
// a table at its bound. The times include two clock readings: impl=none is a call of an empty
// function.
func BenchmarkTail(b *testing.B) {
	calls, known := 1_000_000, 50_000
	if testing.Short() {
		calls, known = 10_000, 500
	}
	none := benchmarks.Contender{
		Name: "none",
		New:  func(tb.Limit, int) func(string) bool { return func(string) bool { return true } },
	}
	// The known keys do not reach this limit.
	limit := tb.Limit{Capacity: 1000, Tokens: 1000, Per: time.Second}
	for _, c := range append([]benchmarks.Contender{none}, contenders()...) {
		for _, par := range []int{2, 64} {
			w := benchmarks.Workload{
				Load: "churn", Par: par, Keys: known, Bound: 2 * known, Limit: limit,
			}
			b.Run(fmt.Sprintf("impl=%s/load=%s/par=%d", c.Name, w.Load, w.Par),
				func(b *testing.B) { churn(b, c, w, calls) })
		}
	}
}

// churn makes calls from w.Par goroutines.
func churn(b *testing.B, c benchmarks.Contender, w benchmarks.Workload, calls int) {
	const callsPerNewKey = 10
	keys := names("known", w.Keys)
	fresh := names("fresh", calls/callsPerNewKey+w.Bound)
	all := histogram()
	for b.Loop() {
		allow := c.New(w.Limit, w.Bound)
		for _, key := range keys {
			allow(key)
		}
		for _, key := range fresh[:w.Bound-w.Keys] {
			allow(key)
		}
		var next atomic.Int64
		next.Store(int64(w.Bound - w.Keys))
		each := make([]*hdrhistogram.Histogram, w.Par)
		var done sync.WaitGroup
		for g := range each {
			each[g] = histogram()
			random := rand.New(rand.NewPCG(5, uint64(g)))
			done.Go(func() {
				for i := range calls / w.Par {
					key := keys[random.IntN(len(keys))]
					if i%callsPerNewKey == 0 {
						key = fresh[next.Add(1)-1]
					}
					record(each[g], allow, key)
				}
			})
		}
		done.Wait()
		for _, h := range each {
			all.Merge(h)
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, p := range []float64{50, 99, 99.9} {
		b.ReportMetric(float64(all.ValueAtQuantile(p)), fmt.Sprintf("p%v-ns", p))
	}
	b.ReportMetric(float64(all.Max()), "max-ns")
}

// names returns n keys, each in memory of its own.
func names(kind string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s-%07d", kind, i)
	}
	return keys
}

// histogram counts nanoseconds up to ten seconds, to one percent.
func histogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, 10e9, 2) }

func record(h *hdrhistogram.Histogram, allow func(string) bool, key string) {
	start := time.Now()
	allow(key)
	if err := h.RecordValue(int64(time.Since(start))); err != nil {
		panic(err) // more than ten seconds
	}
}
