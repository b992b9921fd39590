package algorithm

import "testing"

// A key gets twice the burst within two nanoseconds, one before the edge of a window and one after
// it. The token bucket and the sliding log grant the burst once.
func TestTwiceTheBurstAtTheEdge(t *testing.T) {
	l := newLimit(t, 10, 10, 1e9)
	const edge = 1_700_000_000 * second
	for name, want := range map[string]int{
		"fixed-window": 20, "token-bucket": 10, "sliding-log": 10, "sliding-window": 10, "gcra": 10,
	} {
		limiter := newLimiter(t, name, l)
		if got := granted(limiter, edge-1, 15) + granted(limiter, edge, 15); got != want {
			t.Errorf("%s: %d granted, want %d", name, got, want)
		}
	}
}

// The edges are the same for all keys, whenever they begin, and the last nanosecond of a window
// belongs to it.
func TestFixedWindowsBeginAtMultiples(t *testing.T) {
	limiter := newLimiter(t, "fixed-window", newLimit(t, 10, 10, 1e9))
	for _, step := range []struct {
		now  uint64
		want int
	}{
		{7*second + 1, 10}, {8*second - 1, 0}, {8 * second, 10}, {9*second - 1, 0}, {30 * second, 10},
	} {
		if got := granted(limiter, step.now, 15); got != step.want {
			t.Errorf("at %d: %d granted, want %d", step.now, got, step.want)
		}
	}
}
