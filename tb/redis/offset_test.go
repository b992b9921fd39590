package redis

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestOffsetContainsTheTrueOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 15))
	var o offset
	offsetAt := func(local float64) float64 { return 1e15 + local*(1+0.9/drift) }
	var local float64
	narrowest := int64(math.MaxInt64)
	for range 10_000 {
		local += rng.Float64() * 100_000
		there, back := rng.Float64()*1000, rng.Float64()*1000
		sent := int64(local)
		server := int64(offsetAt(local + there))
		local += there + back
		o.learn(sent, int64(local), server)

		deadline := int64(local) + rng.Int64N(50_000)
		x, most := float64(o.server(deadline)), offsetAt(float64(deadline))
		if x > most || x < most-5000 {
			t.Fatalf("at %d, the server's time is %.0f or later, want at most %.0f", deadline, x, most)
		}
		low, high, _ := o.bounds(int64(local))
		narrowest = min(narrowest, high-low)
	}
	if o.steps != 0 {
		t.Errorf("%d steps, want 0", o.steps)
	}
	if narrowest > 100 {
		t.Errorf("the offset is within %d µs at best, want 100", narrowest)
	}
}

func TestOffsetFollowsAStep(t *testing.T) {
	var o offset
	o.learn(1000, 1100, 5000)
	for i, server := range []int64{10_005_000, 5000} { // forward by 10 s, and back
		o.learn(2000, 2100, server)
		low, high, steps := o.bounds(2100)
		if steps != uint64(i+1) || low != server-2101 || high != server-1999 {
			t.Errorf("step %d: offset %d to %d after %d steps", i, low, high, steps)
		}
	}
	o.learn(2000, 2300, 5100) // a reply that overlaps says nothing new
	if _, _, steps := o.bounds(2300); steps != 2 {
		t.Errorf("%d steps, want 2", steps)
	}
}

// Bounds that touch agree. They move apart by a µs at once, and by another one in each ms.
func TestBoundsOfTheOffset(t *testing.T) {
	for _, server := range []int64{5102, 4898} { // the least and the most offset are the other's
		var o offset
		o.learn(1000, 1100, 5000) // 3899 to 4001
		o.learn(1000, 1100, server)
		touch := map[int64]int64{5102: 4001, 4898: 3899}[server]
		if low, high, steps := o.bounds(1100); low != touch || high != touch || steps != 0 {
			t.Errorf("%d: offset %d to %d after %d steps, want %d", server, low, high, steps, touch)
		}
	}
	var o offset
	o.learn(1000, 1100, 5000)
	for since, apart := range map[int64]int64{-1: 0, 0: 0, 1: 1, 999: 1, 1000: 2, 5000: 6} {
		if low, high, _ := o.bounds(1100 + since); low != 3899-apart || high != 4001+apart {
			t.Errorf("after %d µs: offset %d to %d, want %d more", since, low, high, apart)
		}
	}
}
