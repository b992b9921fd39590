package algorithm

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

const second = uint64(time.Second)

// windowOf returns the length of a window.
func windowOf(t testing.TB, burst int, tokens int64, per time.Duration) uint64 {
	t.Helper()
	window, err := Window(tb.Limit{Capacity: burst, Tokens: tokens, Per: per})
	if err != nil {
		t.Fatal(err)
	}
	return uint64(window)
}

// most returns the most grants in any interval of d, without its first instant.
func most(grants []uint64, d uint64) (n int) {
	first := 0
	for i, g := range grants {
		for grants[first]+d <= g {
			first++
		}
		n = max(n, i+1-first)
	}
	return n
}

// traffic returns the instants of random requests of about twice the limit, with bursts and pauses,
// in order.
func traffic(burst, window uint64, r *rand.Rand, n int) (requests []uint64) {
	now := uint64(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	for range n {
		switch r.Uint64N(10 + 4*burst) {
		case 0:
			now += window/2 + r.Uint64N(2*window)
		case 1: // to the end of a window
			now += window - now%window - 1
		default:
			now += r.Uint64N(window/burst + 1)
		}
		requests = append(requests, now)
	}
	return requests
}

// The sliding log grants a request if and only if the last window has room. No algorithm grants
// twice the burst and more in a window, whatever the traffic is.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 100 {
		per := time.Duration(1+r.Int64N(int64(time.Second)<<r.IntN(8))) + 1e6
		burst := 1 + r.IntN(1<<r.IntN(8))
		window := windowOf(t, burst, 1+r.Int64N(1<<r.IntN(10)), per)
		requests := traffic(uint64(burst), window, r, 500)
		for _, name := range Names {
			take := New[name](uint64(burst), window)
			var grants []uint64
			for i, now := range requests {
				sum := 1
				for _, g := range grants {
					if g+window > now {
						sum++
					}
				}
				got := take(now)
				if name == "sliding-log" && got != (sum <= burst) {
					t.Fatalf("%d in %d ns, request %d: granted %v, %d in a window", burst, window, i, got, sum)
				}
				if got {
					grants = append(grants, now)
				}
			}
			if n := most(grants, window); n > 2*burst || len(grants) == 0 ||
				len(grants) == len(requests) {
				t.Errorf("%s, burst %d in %d ns: %d in a window, %d of %d granted", name, burst, window, n,
					len(grants), len(requests))
			}
		}
	}
}

// The bounds that docs/what-it-is-not.md has are reached, up to a request, at the edge of a window.
func TestBoundsAreReached(t *testing.T) {
	const edge, step = 100 * 2 * second, uint64(time.Millisecond)
	for name, want := range map[string]map[time.Duration]int{ // by interval
		"fixed-window":   {250 * time.Millisecond: 20, 2 * time.Second: 20},
		"sliding-log":    {250 * time.Millisecond: 10, 2 * time.Second: 10},
		"sliding-window": {250 * time.Millisecond: 11, 2 * time.Second: 19},
		"gcra":           {250 * time.Millisecond: 11, 2 * time.Second: 19},
	} {
		take := New[name](10, 2*second) // 5 a second
		var grants []uint64
		for now := edge - step*20; now < edge+2*second-step*20; now += step {
			if take(now) {
				grants = append(grants, now)
			}
		}
		for d, n := range want {
			if got := most(grants, uint64(d)); got != n {
				t.Errorf("%s: %d in %v, want %d", name, got, d, n)
			}
		}
	}
}

// Step by step: the requests of 15 that are granted at an instant.
func TestStepsByHand(t *testing.T) {
	type step struct{ now, want uint64 }
	for name, steps := range map[string][]step{
		// The edges are the same for all keys, and the last nanosecond of a window belongs to it.
		"fixed-window": {{7*second + 1, 10}, {8*second - 1, 0}, {8 * second, 10}, {30 * second, 10}},
		"sliding-log":  {{10*second - 1, 10}, {11*second - 2, 0}, {11*second - 1, 10}},
		// Half of the ten are taken for expired: 19 in less than a second. At the end, the ones of the
		// beginning are not.
		"sliding-window": {{10*second - 1, 10}, {10 * second, 0}, {10*second + second/2, 5},
			{11*second - 2, 4}, {20 * second, 10}, {21*second + second/4, 2}},
		"gcra": {{1, 10}, {second/10 + 1, 1}, {second / 5, 0}, {second/5 + 1, 1}, {9 * second, 10}},
	} {
		take := New[name](10, second)
		for _, s := range steps {
			var got uint64
			for range 15 {
				if take(s.now) {
					got++
				}
			}
			if got != s.want {
				t.Errorf("%s at %d: %d granted, want %d", name, s.now, got, s.want)
			}
		}
	}
}

func TestWindows(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, tt := range []struct {
		burst  int
		tokens int64
		per    time.Duration
		want   time.Duration // 0 for an error
	}{
		{10, 5, time.Second, 2 * time.Second},
		{1, 3, time.Second, 333_333_334},
		{tb.MaxCapacity, 1, 1, tb.MaxCapacity},
		{2, 1, 100 * year, 0},
		{tb.MaxCapacity, 1, 292 * year, 0},
	} {
		got, err := Window(tb.Limit{Capacity: tt.burst, Tokens: tt.tokens, Per: tt.per})
		if (err != nil) != (tt.want == 0) || got != tt.want {
			t.Errorf("%+v: %v, %v", tt, got, err)
		}
	}
}
