package algorithm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// No algorithm grants more than its bound in any interval, whatever the traffic is. The leaky
// bucket is counted as requests leave it.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 100 {
		l := randomLimit(t, r)
		requests := traffic(l, r, 300+20*l.limit.Capacity)
		for _, name := range Names {
			limiter := newLimiter(t, name, l)
			var grants []grant
			refused := 0
			for _, q := range requests {
				result := limiter.Take("k", q.instant, q.units)
				if !result.Granted {
					refused++
					continue
				}
				grants = append(grants, grant{q.instant + uint64(result.Delay), q.units})
			}
			if len(grants) == 0 || refused == 0 {
				t.Fatalf("%s: %d granted, %d refused of %+v", name, len(grants), refused, l)
			}
			for _, d := range []uint64{1, l.window / 10, l.window/2 + 1, l.window} {
				bound := Bound(name, l, time.Duration(d)) * unitsPerToken
				if name == "leaky-bucket" {
					bound += float64(slices.MaxFunc(grants, func(a, b grant) int {
						return int(a.units) - int(b.units)
					}).units)
				}
				// A window rounded up to a nanosecond supplies a little more than the burst.
				bound += float64(l.units)/float64(l.per) + 1
				if got := float64(most(grants, d)); got > math.Ceil(bound) {
					t.Fatalf("%s, %+v: %v units in %v, want at most %v",
						name, l, got, time.Duration(d), bound)
				}
			}
		}
	}
}

// Each bound is tight: some traffic reaches it, up to a request.
func TestBoundsAreReached(t *testing.T) {
	l := newLimit(t, 10, 5, time.Second) // a window of 2 s
	const edge = 100 * 2 * second
	for name, want := range map[string]map[time.Duration]int{ // by interval
		"token-bucket":   {250 * time.Millisecond: 11, 2 * time.Second: 19},
		"fixed-window":   {250 * time.Millisecond: 20, 2 * time.Second: 20},
		"sliding-log":    {250 * time.Millisecond: 10, 2 * time.Second: 10},
		"sliding-window": {250 * time.Millisecond: 11, 2 * time.Second: 19},
		"leaky-bucket":   {250 * time.Millisecond: 2, 2 * time.Second: 10},
		"gcra":           {250 * time.Millisecond: 11, 2 * time.Second: 19},
	} {
		limiter := newLimiter(t, name, l)
		var grants []grant
		step := uint64(time.Millisecond)
		for now := edge - step*20; now < edge+2*second-step*20; now += step {
			if result := limiter.Take("k", now, unitsPerToken); result.Granted {
				grants = append(grants, grant{now + uint64(result.Delay), 1})
			}
		}
		for d, n := range want {
			if got := most(grants, uint64(d)); got != uint64(n) {
				t.Errorf("%s: %d in %v, want %d", name, got, d, n)
			}
			if bound := Bound(name, l, d); float64(n) > bound+1 || float64(n) < bound-1.1 {
				t.Errorf("%s: %d in %v, and the bound is %v", name, n, d, bound)
			}
		}
	}
}
