package lru

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

var everything = flag.Bool("all", false, "compare hit ratios of large tables, too: takes seconds")

// A workload returns a source of keys for a table of the given bound.
type workload func(rng *rand.Rand, bound int) (next func() int)

// zipf has ten times as many keys as the bound, and uses a few of them often.
func zipf(rng *rand.Rand, bound int) func() int {
	z := rand.NewZipf(rng, 1.02, 10, uint64(10*bound))
	return func() int { return int(z.Uint64()) }
}

// scans walks over ranges of keys, one after another. A range starts anywhere in four times the
// bound. Its length is from a tenth of the bound to about twice the bound.
func scans(rng *rand.Rand, bound int) func() int {
	key, left := 0, 0
	return func() int {
		if left == 0 {
			key, left = rng.IntN(4*bound), bound/10+rng.IntN(2*bound)
		}
		key++
		left--
		return key
	}
}

// scansThrough is zipf interrupted by scans of other keys. A third of all uses are scans.
func scansThrough(rng *rand.Rand, bound int) func() int {
	hot, cold := zipf(rng, bound), scans(rng, bound)
	scan, left := true, 0
	return func() int {
		if left == 0 {
			scan = !scan
			left = bound / 2
			if !scan {
				left = bound
			}
		}
		left--
		if scan {
			return -1 - cold()
		}
		return hot()
	}
}

// In a large table, an insert may meet more stale stamps than it corrects. This must not change
// the hit ratio.
func TestHitRatioOfExactLRU(t *testing.T) {
	bounds, usesPerKey := []int{1000, 10_000}, 4
	if *everything {
		bounds, usesPerKey = append(bounds, 100_000), 8
	}
	for _, w := range []struct {
		name string
		workload
	}{{"zipf", zipf}, {"scans", scans}, {"scans through zipf", scansThrough}} {
		for _, bound := range bounds {
			t.Run(fmt.Sprintf("%s/%d keys", w.name, bound), func(t *testing.T) {
				compareHits(t, w.workload, bound, max(20_000, bound*usesPerKey))
			})
		}
	}
}

// compareHits runs a workload on an exact LRU and on a map, and compares the hit ratios.
func compareHits(t *testing.T, w workload, bound, uses int) {
	const tolerance = 0.5 // percentage points
	hits := func(use func(key int) (hit bool)) float64 {
		return hitRatio(w(rand.New(rand.NewPCG(uint64(bound), 7)), bound), uses, use)
	}
	lru, _ := simplelru.NewLRU[int, struct{}](bound, nil)
	want := hits(func(key int) bool {
		_, hit := lru.Get(key)
		if !hit {
			lru.Add(key, struct{}{})
		}
		return hit
	})
	t.Logf("exact LRU: %.2f%% hits", want)
	if want < 5 || want > 95 {
		t.Error("too few or too many hits to compare")
	}
	got := hits(newCache[int](bound, false).use)
	t.Logf("%+.2f", got-want)
	if math.Abs(got-want) > tolerance {
		t.Errorf("%.2f%% hits, want %.2f%% as exact LRU, ± %v", got, want, tolerance)
	}
}

// hitRatio returns the percentage of hits among the given number of uses.
func hitRatio(next func() int, uses int, use func(key int) (hit bool)) float64 {
	hits := 0
	for range uses {
		if use(next()) {
			hits++
		}
	}
	return 100 * float64(hits) / float64(uses)
}
