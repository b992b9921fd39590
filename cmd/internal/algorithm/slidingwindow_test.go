package algorithm

import "testing"

// The counter grants more than the burst in one length if the grants of the window before came at
// its end.
func TestSlidingWindowCountsTooFew(t *testing.T) {
	l := newLimit(t, 10, 10, 1e9)
	counter, log := newTake(t, "sliding-window", l), newTake(t, "sliding-log", l)
	for _, step := range []struct {
		now          uint64
		counter, log int
	}{
		{10*second - 1, 10, 10},
		{10 * second, 0, 0},
		{10*second + second/2, 5, 0}, // half of the ten are taken for expired
		{11*second - 2, 4, 0},        // 19 in less than a second
		{11*second - 1, 0, 10},
	} {
		if got := granted(counter, step.now, 15); got != step.counter {
			t.Errorf("at %d: %d granted, want %d", step.now, got, step.counter)
		}
		if got := granted(log, step.now, 15); got != step.log {
			t.Errorf("at %d: the log granted %d, want %d", step.now, got, step.log)
		}
	}
}

// The counter refuses requests although the length has room if the grants of the window before
// came at its beginning.
func TestSlidingWindowCountsTooMany(t *testing.T) {
	l := newLimit(t, 10, 10, 1e9)
	counter, log := newTake(t, "sliding-window", l), newTake(t, "sliding-log", l)
	granted(counter, 10*second, 10)
	granted(log, 10*second, 10)
	const now = 11*second + second/4
	if c, l := granted(counter, now, 10), granted(log, now, 10); c != 2 || l != 10 {
		t.Errorf("%d granted, want 2; the log %d, want 10", c, l)
	}
}
