package algorithm

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A burst leaves the queue one by one, at the rate. The last request waits for all before it.
func TestLeakyBucketDelaysABurst(t *testing.T) {
	limiter := newLimiter(t, "leaky-bucket", newLimit(t, 10, 5, 1e9))
	now := 10 * second
	for i := range 12 {
		result := limiter.Take("k", now, unitsPerToken)
		want := Result{Granted: i < 10, Delay: time.Duration(i) * time.Second / 5}
		if !want.Granted {
			want.Delay = 0
		}
		if want.Leaves = now + uint64(want.Delay); result != want {
			t.Errorf("request %d: %+v, want %+v", i, result, want)
		}
	}
	now += second/5 - 1
	if result := limiter.Take("k", now, unitsPerToken); result.Granted {
		t.Errorf("a nanosecond before the first leaves: %+v", result)
	}
	now++
	if result := limiter.Take("k", now, unitsPerToken); result.Delay != 9*time.Second/5 {
		t.Errorf("when the first leaves: %+v", result)
	}
	if result := limiter.Take("k", now+2*second, unitsPerToken); !result.Granted || result.Delay != 0 {
		t.Errorf("when the queue is empty: %+v", result)
	}
}

// A delay is rounded up to a nanosecond, and the rounding does not add up.
func TestLeakyBucketRoundsUp(t *testing.T) {
	limiter := newLimiter(t, "leaky-bucket", newLimit(t, 4, 3, 1e9))
	for i, want := range []time.Duration{0, 333_333_334, 666_666_667, 1_000_000_000} {
		result := limiter.Take("k", second, unitsPerToken)
		if !result.Granted || result.Delay != want {
			t.Errorf("request %d: %+v, want %d ns", i, result, want)
		}
	}
}

// The queue grants what GCRA grants, and so what a token bucket grants: the queue adds only delays.
// Requests leave in order.
func TestLeakyBucketGrantsWhatGCRAGrants(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 100 {
		l := randomLimit(t, r)
		queue, meter := newLimiter(t, "leaky-bucket", l), newLimiter(t, "gcra", l)
		var last uint64
		var delays time.Duration
		for i, q := range traffic(l, r, 500) {
			got := queue.Take("k", q.instant, q.units)
			if want := meter.Take("k", q.instant, q.units).Granted; got.Granted != want {
				t.Fatalf("%+v, request %d: granted %v, want %v", l, i, got.Granted, want)
			}
			if got.Granted {
				if got.Leaves < last || got.Delay > l.Window() {
					t.Fatalf("%+v, request %d: leaves at %d after %v, the one before at %d",
						l, i, got.Leaves, got.Delay, last)
				}
				last = got.Leaves
			}
			delays += got.Delay
		}
		if delays == 0 && l.limit.Capacity > 1 {
			t.Fatalf("%+v: no request was delayed", l)
		}
	}
}
