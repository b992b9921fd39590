package cas

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

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

// The units since any base are exact, but at least 0 and at most what a word holds.
func TestElapsedIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	var none, most int
	for _, l := range edgeLimits {
		m := newLayout(l)
		for _, start := range instants(l, rng) {
			base := m.positionAt(start).blocks
			from := new(big.Int).Lsh(new(big.Int).SetUint64(base), uint(m.blockBits))
			for _, at := range []uint64{
				0, start - 1, start, start + 1, start + rng.Uint64()>>rng.IntN(64), math.MaxUint64,
			} {
				want := supplyAt(l, m.scale, at)
				switch want.Sub(want, from); {
				case want.Sign() < 0:
					want.SetUint64(0)
					none++
				case !want.IsUint64():
					want.SetUint64(math.MaxUint64)
					most++
				}
				if got := m.elapsed(base, at); got != want.Uint64() {
					t.Fatalf("limit %+v, base %d: %d units by %d, want %v", l, base, got, at, want)
				}
			}
		}
	}
	if none == 0 || most == 0 {
		t.Errorf("%d readings before the base, and %d far after it", none, most)
	}
}

// The last instant of the clock is one that a call can wait for.
func TestWaitUntilTheLastInstant(t *testing.T) {
	m := newLayout(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second})
	for then, want := range map[uint64]time.Duration{m.end - 1: 4, m.end: 5, m.end + 1: tb.Never} {
		if wait := m.wait(m.end-5, then); wait != want {
			t.Errorf("%v to %d after the end, want %v", wait, int64(then-m.end), want)
		}
	}
}
