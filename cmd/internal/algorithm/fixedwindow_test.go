package algorithm

import "testing"

// The edges are the same for all keys, whenever they begin, and the last nanosecond of a window
// belongs to it.
func TestFixedWindowsBeginAtMultiples(t *testing.T) {
	take := newTake(t, "fixed-window", newLimit(t, 10, 10, 1e9))
	for _, step := range []struct {
		now  uint64
		want int
	}{
		{7*second + 1, 10}, {8*second - 1, 0}, {8 * second, 10}, {9*second - 1, 0}, {30 * second, 10},
	} {
		if got := granted(take, step.now, 15); got != step.want {
			t.Errorf("at %d: %d granted, want %d", step.now, got, step.want)
		}
	}
}
