package algorithm

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

const second = uint64(time.Second)

// newLimit returns a limit of tokens every per.
func newLimit(t testing.TB, burst int, tokens int64, per time.Duration) *Limit {
	t.Helper()
	l, err := NewLimit(tb.Limit{Capacity: burst, Tokens: tokens, Per: per})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// grant is a granted request.
type grant struct{ instant, units uint64 }

// most returns the most units that were granted in any interval of d, without its first instant.
func most(grants []grant, d uint64) (units uint64) {
	var sum uint64
	first := 0
	for _, g := range grants {
		sum += g.units
		for grants[first].instant+d <= g.instant {
			sum -= grants[first].units
			first++
		}
		units = max(units, sum)
	}
	return units
}

// traffic returns random requests of about twice the limit: bursts, pauses, and costs of fractions
// of a token, with the instants in order.
func traffic(l *Limit, r *rand.Rand, n int) (requests []grant) {
	now := uint64(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	burst := l.capacity / unitsPerToken
	for range n {
		switch r.Uint64N(10 + 4*burst) {
		case 0:
			now += l.window/2 + r.Uint64N(2*l.window)
		case 1: // to the end of a window
			now += l.window - now%l.window - 1
		default:
			now += r.Uint64N(l.window/burst + 1)
		}
		cost := uint64(unitsPerToken)
		if r.IntN(4) == 0 {
			cost = 1 + r.Uint64N(min(l.capacity, 3*unitsPerToken))
		}
		requests = append(requests, grant{now, cost})
	}
	return requests
}

// The sliding log grants a request if and only if the last window has room. No algorithm grants
// twice the burst and more in a window, whatever the traffic is.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 100 {
		per := time.Duration(1+r.Int64N(int64(time.Second)<<r.IntN(8))) + 1e6
		l := newLimit(t, 1+r.IntN(1<<r.IntN(8)), 1+r.Int64N(1<<r.IntN(10)), per)
		requests := traffic(l, r, 500)
		for _, name := range Names {
			take := algorithms[name](l)
			var grants []grant
			for i, q := range requests {
				sum := q.units
				for _, g := range grants {
					if g.instant+l.window > q.instant {
						sum += g.units
					}
				}
				got := take(q.instant, q.units)
				if name == "sliding-log" && got != (sum <= l.capacity) {
					t.Fatalf("%+v, request %d: granted %v with %d units in a window", l, i, got, sum)
				}
				if got {
					grants = append(grants, q)
				}
			}
			if n := most(grants, l.window); n > 2*l.capacity || len(grants) == 0 ||
				len(grants) == len(requests) {
				t.Errorf("%s, %+v: %d units in a window, %d of %d granted", name, l, n, len(grants),
					len(requests))
			}
		}
	}
}

// The bounds that docs/algorithms.md has are reached, up to a request, at the edge of a window.
func TestBoundsAreReached(t *testing.T) {
	l := newLimit(t, 10, 5, time.Second) // a window of 2 s
	const edge, step = 100 * 2 * second, uint64(time.Millisecond)
	for name, want := range map[string]map[time.Duration]uint64{ // by interval
		"fixed-window":   {250 * time.Millisecond: 20, 2 * time.Second: 20},
		"sliding-log":    {250 * time.Millisecond: 10, 2 * time.Second: 10},
		"sliding-window": {250 * time.Millisecond: 11, 2 * time.Second: 19},
		"gcra":           {250 * time.Millisecond: 11, 2 * time.Second: 19},
	} {
		take := algorithms[name](l)
		var grants []grant
		for now := edge - step*20; now < edge+2*second-step*20; now += step {
			if take(now, unitsPerToken) {
				grants = append(grants, grant{now, 1})
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
	l := newLimit(t, 10, 10, time.Second)
	type step struct{ now, want uint64 }
	for name, steps := range map[string][]step{
		// The edges are the same for all keys, and the last nanosecond of a window belongs to it.
		"fixed-window": {{7*second + 1, 10}, {8*second - 1, 0}, {8 * second, 10}, {30 * second, 10}},
		// Half of the ten are taken for expired: 19 in less than a second. At the end, the ones of the
		// beginning are not.
		"sliding-window": {{10*second - 1, 10}, {10 * second, 0}, {10*second + second/2, 5},
			{11*second - 2, 4}, {20 * second, 10}, {21*second + second/4, 2}},
		"sliding-log": {{10*second - 1, 10}, {11*second - 2, 0}, {11*second - 1, 10}},
		"gcra":        {{1, 10}, {second/10 + 1, 1}, {second / 5, 0}, {second/5 + 1, 1}, {9 * second, 10}},
	} {
		take := algorithms[name](l)
		for _, s := range steps {
			var got uint64
			for range 15 {
				if take(s.now, unitsPerToken) {
					got++
				}
			}
			if got != s.want {
				t.Errorf("%s at %d: %d granted, want %d", name, s.now, got, s.want)
			}
		}
	}
}

// GCRA and the token bucket are one algorithm: each call has the same answer, while the rate
// supplies a unit in whole nanoseconds.
func TestGCRAIsATokenBucket(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 100 {
		each := 1 + r.Int64N(1<<r.IntN(20))                    // nanoseconds for a unit
		limit := tb.Limit{Capacity: 1 + r.IntN(83), Tokens: 1, // more tokens have coarser units
			Per: time.Duration(each * unitsPerToken)}
		l := newLimit(t, limit.Capacity, 1, limit.Per)
		var clock time.Time
		bucket, err := mutex.New[string](limit, tb.WithClock(func() time.Time { return clock }))
		if err != nil {
			t.Fatal(err)
		}
		take, answers := gcra(l), map[bool]int{}
		for i, q := range traffic(l, r, 1000) {
			now := q.instant - q.instant%uint64(each)
			clock = time.Unix(0, int64(now))
			want, err := bucket.AllowCost(t.Context(), "k", float64(q.units)/unitsPerToken)
			got := take(now, q.units)
			if answers[got]++; err != nil || got != want.Allowed {
				t.Fatalf("%+v, request %d: granted %v, tb/mutex %v, %v", l, i, got, want, err)
			}
		}
		if answers[true] == 0 || answers[false] == 0 {
			t.Fatalf("%+v: %v", l, answers)
		}
	}
}

func TestLimits(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, tt := range []struct {
		burst  int
		tokens int64
		per    time.Duration
		window time.Duration // 0 for an error
	}{
		{10, 5, time.Second, 2 * time.Second},
		{1, 3, time.Second, 333_333_334},
		{tb.MaxCapacity, 1, 1, tb.MaxCapacity},
		{2, 1, 100 * year, 0},
		{tb.MaxCapacity, 1, 292 * year, 0},
	} {
		l, err := NewLimit(tb.Limit{Capacity: tt.burst, Tokens: tt.tokens, Per: tt.per})
		if (err != nil) != (tt.window == 0) || err == nil && l.Window() != tt.window {
			t.Errorf("%+v: %+v, %v", tt, l, err)
		}
	}
	l := newLimit(t, 10, 1, time.Second)
	for tokens, want := range map[float64]uint64{
		1: 1_000_000, 0.1: 100_000, 0.3: 300_000, 1e-7: 1, 1.0000001: 1_000_001, 10: 10_000_000,
		10.1: 10_000_001, 1e300: 10_000_001,
	} {
		if got := l.Units(tokens); got != want {
			t.Errorf("%v tokens: %d units, want %d", tokens, got, want)
		}
	}
}
