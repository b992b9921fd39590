package xtime

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/rate"
)

var steps = flag.Int("steps", 20_000, "calls of each subtest of TestRandomPrograms")

// edges are limits and bursts that half of the programs of a subtest have, or change to.
var edges = map[string]struct {
	limits []rate.Limit
	bursts []int
}{
	"none":           {},
	"Inf":            {[]rate.Limit{rate.Inf}, []int{-1, 0, 1, 8}},
	"limit 0":        {[]rate.Limit{0}, []int{1, 3}},
	"negative limit": {[]rate.Limit{-1, rate.Limit(math.Inf(-1))}, []int{1, 3}},
	"burst 0":        {nil, []int{0}},
	"negative burst": {nil, []int{-1, -5}},
	"all":            {[]rate.Limit{rate.Inf, 0, -1}, []int{0, -1, -5}},
}

// pick returns one of the values, or of the edges in half of the cases.
func pick[T any](rng *rand.Rand, edges, values []T) T {
	if len(edges) > 0 && rng.IntN(2) == 0 {
		values = edges
	}
	return values[rng.IntN(len(values))]
}

// Times and rates are powers of two, so that neither limiter has a rounding error, and bursts up to
// 83 have units of a millionth of a token.
func TestRandomPrograms(t *testing.T) {
	const step = time.Second / 512
	starts := []time.Time{time.Now(), {}, time.Unix(0, 0), time.Unix(1<<40, 0)}
	for name, edge := range edges {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			limit := func() rate.Limit { return pick(rng, edge.limits, []rate.Limit{8, 16, 64, 512}) }
			burst := func() int { return pick(rng, edge.bursts, []int{1, 2, 3, 8, 83}) }
			for done := 0; done < *steps; {
				p := newPair(t, limit(), burst())
				p.start = pick(rng, nil, starts)
				now := time.Duration(0)
				for range 200 {
					if done++; rng.IntN(2) == 0 {
						now += step * time.Duration(rng.IntN(1<<rng.IntN(11)))
					}
					n := rng.IntN(max(p.burst, 0)+3) - 1 - rng.IntN(2) // -2 to burst+1
					switch rng.IntN(16) {
					case 0:
						p.setLimit(now, limit())
					case 1:
						p.setBurst(now, burst())
					case 2, 3, 4:
						p.cancel(now)
					case 5, 6, 7, 8:
						p.reserve(now, n)
					default:
						p.allow(now, n)
					}
				}
			}
		})
	}
}
