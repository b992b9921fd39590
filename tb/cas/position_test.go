package cas

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestSinceDoesNotOverflow(t *testing.T) {
	m := newLayout(tb.Limit{Capacity: 3, Tokens: 1, Per: 1}) // a million units a nanosecond
	start := firstInstant(tb.Limit{Per: 1})
	base := m.positionAt(start).blocks
	for _, d := range []uint64{1 << 20, 18446744073710, 1 << 50, 1<<63 - 1} {
		if got := m.since(base, m.positionAt(start+d)); got < 1_000_000_000_000 {
			t.Errorf("%d units in %d ns, want at least 10¹²", got, d)
		}
	}
	if got := m.since(base, m.positionAt(start-1)); got != 0 {
		t.Errorf("%d units at a position before the base, want 0", got)
	}
}
