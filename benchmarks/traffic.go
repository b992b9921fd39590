package benchmarks

import (
	"sync"
	"sync/atomic"
	"testing"
)

// batch is how many calls a goroutine makes between two looks at what it shares with the
// others, so that what it measures is what the limiter shares.
const batch = 250

// traffic is a workload under way. Each run goes on where the last one ended: in a tenth
// of a second not all of a million keys have their turn, and a new key is new only once.
type traffic struct {
	Workload
	calls func() []string
	made  *int         // calls so far, of all workloads on the same table
	width atomic.Int64 // how many of calls are in use, in fractions; steer changes it

	settled bool // a mix has found its width
}

// run makes b.N calls and fails if they were not what the workload's name says.
func (t *traffic) run(b *testing.B, allow func(string) bool) {
	calls := t.calls()
	if t.width.Load() == 0 {
		t.width.Store(int64(len(calls)) * fraction)
	}
	if t.Load == "mix" && b.N > judged && !t.settled {
		t.drive(settling, calls, allow)
		t.settled = true
	}
	b.ReportAllocs()
	b.ResetTimer()
	granted := t.drive(b.N, calls, allow)
	b.StopTimer()
	t.check(b, calls, granted)
	*t.made += b.N
}

// drive makes n calls with as many goroutines as the workload has, and returns how many
// were granted.
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

// work makes calls until all goroutines together have made n, and returns how many were
// granted.
func (t *traffic) work(
	n int, calls []string, allow func(string) bool, next *atomic.Int64,
) (granted int64) {
	for {
		start := int(next.Add(batch)) - batch
		if start >= n {
			return granted
		}
		width := int(t.width.Load() / fraction)
		at, size, grants := (*t.made+start)%width, min(batch, n-start), 0
		for range size {
			if allow(calls[at]) {
				grants++
			}
			if at++; at == width {
				at = 0
			}
		}
		granted += int64(grants)
		if t.Load == "mix" {
			t.steer(grants, size)
		}
	}
}

// steer keeps a mix at a load of about twice the limit, whatever the speed of machine and
// limiter: if more than half of the calls were granted, fewer keys share them from now
// on, so that each is called more often. The more goroutines there are, the older is what
// one of them tells when it has its turn, and the less it changes.
func (t *traffic) steer(granted, calls int) {
	width := t.width.Load()
	excess := int64(2*granted - calls)
	step := width * excess / int64(calls) / int64(max(32, 2*t.Par))
	t.width.Store(min(max(width-step, fraction), int64(t.Keys)*fraction))
}

// fraction is the unit of a width: so many are a key.
const fraction = 1024

// A mix takes up to settling calls to find its number of keys. Over fewer than judged, the
// share of grants may be any.
const settling, judged = 400_000, 100_000

func (t *traffic) check(b *testing.B, calls []string, granted int) {
	share := float64(granted) / float64(b.N)
	switch t.Load {
	case "mix":
		b.ReportMetric(share, "granted/op")
		if b.N > judged && (share < 0.4 || share > 0.6) {
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
	n := min(b.N, len(calls)) // after that they are the same again
	distinct, top := t.seen(calls, n)
	if t.Dist == "zipf" {
		checkZipf(b, t.Keys, n, distinct, top)
	} else if want := min(n, t.Keys); distinct != want {
		b.Errorf("%d distinct keys called, want %d", distinct, want)
	}
}

// seen returns how many distinct keys the n calls after the first *t.made were for, and how
// many of them were for key 0, the most frequent one under zipf.
func (t *traffic) seen(calls []string, n int) (distinct, top int) {
	seen := make([]bool, t.Keys)
	for i := range n {
		key := number(calls[(*t.made+i)%len(calls)])
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
