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
	position *int         // calls so far, of all workloads on the same table
	width    atomic.Int64 // the part of calls in use, in fractions of a key; steer changes it

	settled bool // a mix has found its width
}

// run makes b.N calls and fails if they are not the workload of its name.
func (t *traffic) run(b *testing.B, allow func(string) bool) {
	calls := t.calls()
	if t.width.Load() == 0 {
		t.width.Store(int64(len(calls)) * fraction)
	}
	if t.Load == "mix" && b.N > judgedCalls && !t.settled {
		t.drive(settlingCalls, calls, allow)
		t.settled = true
	}
	b.ReportAllocs()
	b.ResetTimer()
	granted := t.drive(b.N, calls, allow)
	b.StopTimer()
	t.check(b, calls, granted)
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
		width := int(t.width.Load() / fraction)
		index, size, grants := (*t.position+start)%width, min(batch, n-start), 0
		for range size {
			if allow(calls[index]) {
				grants++
			}
			if index++; index == width {
				index = 0
			}
		}
		granted += int64(grants)
		if t.Load == "mix" {
			t.steer(grants, size)
		}
	}
}

// steer keeps a mix at about twice the limit for any speed of machine and limiter. If more
// than half of the calls were granted, later calls go to fewer keys, so each key is called
// more often. With more goroutines a batch is older when it is counted, so it has less
// influence.
func (t *traffic) steer(granted, calls int) {
	width := t.width.Load()
	excess := int64(2*granted - calls)
	step := width * excess / int64(calls) / int64(max(32, 2*t.Par))
	t.width.Store(min(max(width-step, fraction), int64(t.Keys)*fraction))
}

// fraction is the number of units of a width per key.
const fraction = 1024

// A mix needs up to settlingCalls to find its number of keys. Fewer than judgedCalls may
// have any share of grants.
const settlingCalls, judgedCalls = 400_000, 100_000

func (t *traffic) check(b *testing.B, calls []string, granted int) {
	share := float64(granted) / float64(b.N)
	switch t.Load {
	case "mix":
		b.ReportMetric(share, "granted/op")
		if b.N > judgedCalls && (share < 0.4 || share > 0.6) {
			b.Errorf("%.2f of the calls granted, want half", share)
		}
		return
	case "refuse":
		if granted != 0 {
			b.Errorf("%d of %d calls granted, want none", granted, b.N)
		}
	default:
		if granted != b.N {
			b.Errorf("%d of %d calls granted, want all", granted, b.N)
		}
	}
	n := min(b.N, len(calls)) // later calls repeat these
	distinct, top := t.keyCounts(calls, n)
	if t.Dist == "zipf" {
		checkZipf(b, t.Keys, n, distinct, top)
	} else if want := min(n, t.Keys); distinct != want {
		b.Errorf("%d distinct keys called, want %d", distinct, want)
	}
}

// keyCounts returns the number of distinct keys in the n calls after the first *t.position,
// and the number of calls of key 0, the most frequent key under zipf.
func (t *traffic) keyCounts(calls []string, n int) (distinct, top int) {
	seen := make([]bool, t.Keys)
	for i := range n {
		key := number(calls[(*t.position+i)%len(calls)])
		if !seen[key] {
			seen[key] = true
			distinct++
		}
		if key == 0 {
			top++
		}
	}
	return distinct, top
}
