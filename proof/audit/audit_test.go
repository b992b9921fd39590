package audit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The audit is compared with one that looks at each interval by itself. The grants are added at
// once, or in two parts.
func TestExcess(t *testing.T) {
	above := 0
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 30))
		capacity, rate := 1+rng.Int64N(50), 1+rng.Int64N(5)
		grants := make([]Grant[int64], 2+rng.IntN(20))
		half := len(grants) / 2
		for i := range grants {
			from := rng.Int64N(50)
			to := from + rng.Int64N(20)
			if i >= half {
				from, to = from+70, to+70
			}
			grants[i] = Grant[int64]{from, to, 1 + rng.Int64N(20), rate*from - capacity, rate * to}
		}
		want := int64(math.MinInt64)
		for _, x := range grants {
			for _, y := range grants {
				sum, any := int64(0), false
				for _, g := range grants {
					if g.From >= x.From && g.To <= y.To {
						sum, any = sum+g.Amount, true
					}
				}
				if any {
					want = max(want, sum-(y.Most-x.Least))
				}
			}
		}
		var a, b Auditor[int64]
		parts := max(a.Add(slices.Clone(grants[:half])), a.Add(slices.Clone(grants[half:])))
		if got := b.Add(grants); got != want || parts != want {
			t.Fatalf("seed %d: %d at once and %d in parts, want %d: %+v", seed, got, parts, want, grants)
		}
		if want > 0 {
			above++
		}
	}
	if above < 400 || above > 3600 {
		t.Errorf("%d of 4000 are above the bound", above)
	}
}
