package linearizable

import (
	"testing"

	"github.com/seed-181794aa/ratelimit/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// TestSpanIsWhereBucketsMove checks package span, on which the census of moves relies. A hit
// allocates only if it moves its bucket.
func TestSpanIsWhereBucketsMove(t *testing.T) {
	for _, limit := range limits {
		for _, moves := range []bool{false, true} {
			l, err := cas.New[string](limit, tb.WithClock(new(sharedClock).read))
			if err != nil {
				t.Fatal(err)
			}
			span.Start(l)
			at := span.Origin.Add(span.Delta(limit))
			if !moves {
				at = span.Origin.Add(span.Delta(limit) - span.Delta(limit)/1000)
			}
			keys := make([]string, 0, 101) // one for the warm-up
			for i := range cap(keys) {
				keys = append(keys, key(i))
				_, _ = l.AllowAt(span.Origin, keys[i], float64(limit.Capacity))
			}
			i := 0
			allocated := testing.AllocsPerRun(len(keys)-1, func() {
				_, _ = l.AllowAt(at, keys[i], float64(limit.Capacity))
				i++
			})
			if (allocated > 0) != moves {
				t.Errorf("limit %+v: %v allocations a grant at %v", limit, allocated, at.Sub(span.Origin))
			}
		}
	}
}
