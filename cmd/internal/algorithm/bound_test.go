package algorithm

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// No algorithm grants more than its bound in any interval, whatever the traffic is.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 100 {
		l := randomLimit(t, r)
		requests := traffic(l, r, 300+20*l.limit.Capacity)
		for _, name := range Names {
			take := newTake(t, name, l)
			var grants []grant
			refused := 0
			for _, q := range requests {
				if !take(q.instant, q.units) {
					refused++
					continue
				}
				grants = append(grants, q)
			}
			if len(grants) == 0 || refused == 0 {
				t.Fatalf("%s: %d granted, %d refused of %+v", name, len(grants), refused, l)
			}
			for _, d := range []uint64{1, l.window / 10, l.window/2 + 1, l.window} {
				bound := Bound(name, l, time.Duration(d)) * unitsPerToken
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
		"fixed-window":   {250 * time.Millisecond: 20, 2 * time.Second: 20},
		"sliding-log":    {250 * time.Millisecond: 10, 2 * time.Second: 10},
		"sliding-window": {250 * time.Millisecond: 11, 2 * time.Second: 19},
		"gcra":           {250 * time.Millisecond: 11, 2 * time.Second: 19},
	} {
		take := newTake(t, name, l)
		var grants []grant
		step := uint64(time.Millisecond)
		for now := edge - step*20; now < edge+2*second-step*20; now += step {
			if take(now, unitsPerToken) {
				grants = append(grants, grant{now, 1})
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
