package benchmarks

import (
	"sync"
	"sync/atomic"
	"testing"
)

// batch is the number of calls between two uses of the counter that goroutines share. It is
// large, so that the limiter is what they contend for.
const batch = 250

// traffic is a workload in progress. Each run continues after the calls of the last, because
// a run is too short for a million keys and a new key is new only once.
type traffic struct {
	Workload
	calls    func() []string
	position *int // calls so far, of all workloads on the same table
}

// run makes b.N calls and fails if they are not the workload of its name.
func (t *traffic) run(b *testing.B, allow func(string) bool) {
	calls := t.calls()
	b.ReportAllocs()
	b.ResetTimer()
	granted := together(b.N, t.Par, func(start, end int) (granted int) {
		index := (*t.position + start) % len(calls)
		for range end - start {
			if allow(calls[index]) {
				granted++
			}
			if index++; index == len(calls) {
				index = 0
			}
		}
		return granted
	})
	b.StopTimer()
	t.check(b, granted)
	*t.position += b.N
}

// together makes n calls from par goroutines and returns the sum of the results. use makes the
// calls with the numbers from start up to end.
func together(n, par int, use func(start, end int) int) int {
	var all sync.WaitGroup
	var next, sum atomic.Int64
	for range par {
		all.Go(func() {
			results := 0
			for start := int(next.Add(batch)) - batch; start < n; start = int(next.Add(batch)) - batch {
				results += use(start, min(start+batch, n))
			}
			sum.Add(int64(results))
		})
	}
	all.Wait()
	return int(sum.Load())
}

func (t *traffic) check(b *testing.B, granted int) {
	want := b.N
	if t.Load == "refuse" {
		want = 0
	}
	if granted != want {
		b.Errorf("%d of %d calls granted, want %d", granted, b.N, want)
	}
}
