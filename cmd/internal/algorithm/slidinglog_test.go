package algorithm

import (
	"math/rand/v2"
	"testing"
)

// A request is granted if and only if the last window has room, counted from all grants so far.
func TestSlidingLogIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 100 {
		l := randomLimit(t, r)
		take := slidingLog(l)
		var grants []grant
		for i, q := range traffic(l, r, 500) {
			sum := q.units
			for _, g := range grants {
				if g.instant+l.window > q.instant {
					sum += g.units
				}
			}
			got := take(q.instant, q.units)
			if want := sum <= l.capacity; got != want {
				t.Fatalf("%+v, request %d: granted %v, want %v", l, i, got, want)
			}
			if got {
				grants = append(grants, q)
			}
		}
	}
}
