package benchmarks

import (
	"math"
	"testing"
)

// zipf is the exponent of Zipf's distribution: the k-th most frequent key has a share of the
// calls in proportion to k to the power of -zipf.
const zipf = 1.1

// checkZipf fails if n calls do not have Zipf's distribution. It checks the number of distinct
// keys and the calls of the most frequent key.
func checkZipf(b *testing.B, keys, n, distinct, top int) {
	if n < 10_000 {
		return // too few to judge
	}
	wantDistinct, wantTop := zipfExpects(keys, float64(n))
	if share := float64(top) / float64(n); math.Abs(share-wantTop) > 0.02 {
		b.Errorf("%.3f of the calls were for one key, want %.3f", share, wantTop)
	}
	if math.Abs(float64(distinct)-wantDistinct) > 0.05*wantDistinct {
		b.Errorf("%d distinct keys called, want %.0f", distinct, wantDistinct)
	}
}

// zipfExpects returns the expected number of distinct keys in n calls and the share of the
// most frequent key. It sums over groups of keys with nearly the same rank.
func zipfExpects(keys int, n float64) (distinct, top float64) {
	sum := func(f func(weight float64) float64) (s float64) {
		for lo := 1; lo <= keys; {
			hi := min(keys, max(lo, lo*21/20))
			middle := math.Sqrt(float64(lo) * float64(hi))
			s += float64(hi-lo+1) * f(math.Pow(middle, -zipf))
			lo = hi + 1
		}
		return s
	}
	total := sum(func(weight float64) float64 { return weight })
	distinct = sum(func(weight float64) float64 { return 1 - math.Exp(-n*weight/total) })
	return distinct, 1 / total
}
