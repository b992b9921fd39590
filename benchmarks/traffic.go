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
	granted := t.drive(b.N, calls, allow)
	b.StopTimer()
	t.check(b, granted)
	*t.position += b.N
}

// drive makes n calls with the workload's goroutines and returns the number of grants.
func (t *traffic) drive(n int, calls []string, allow func(string) bool) int {
	var next, granted atomic.Int64
	if t.Par == 1 {
		granted.Add(t.work(n, calls, allow, &next))
	} else {
		var all sync.WaitGroup
		for range t.Par {
			all.Go(func() { granted.Add(t.work(n, calls, allow, &next)) })
		}
		all.Wait()
	}
	return int(granted.Load())
}

// work makes calls until all goroutines together have made n, and returns its number of
// grants.
func (t *traffic) work(
	n int, calls []string, allow func(string) bool, next *atomic.Int64,
) (granted int64) {
	for {
		start := int(next.Add(batch)) - batch
		if start >= n {
			return granted
		}
		index := (*t.position + start) % len(calls)
		for range min(batch, n-start) {
			if allow(calls[index]) {
				granted++
			}
			if index++; index == len(calls) {
				index = 0
			}
		}
	}
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
