package adapt

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestBucketsAreContiguous(t *testing.T) {
	last := 0
	for steps := range uint64(maxSteps + 1) {
		b := bucketOf(steps)
		if b != last && (b != last+1 || lowest(b) != steps) {
			t.Fatalf("latency %d: bucket %d from %d, after bucket %d", steps, b, lowest(b), last)
		}
		last = b
	}
	if last != buckets-1 {
		t.Errorf("the last bucket is %d, want %d", last, buckets-1)
	}
}

func TestQuantileIsWithinASixteenth(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var d distribution
		all := make([]uint64, 100+random.IntN(1000))
		scale := 1 << random.IntN(13)
		for i := range all {
			all[i] = uint64(random.ExpFloat64() * float64(scale))
			all[i] = min(all[i], maxSteps-1)
			d.weight[bucketOf(all[i])]++
			d.total++
		}
		slices.Sort(all)
		for _, q := range []float64{0.5, 0.9, 0.99} {
			want := float64(all[min(len(all)-1, int(q*float64(len(all))))])
			got := d.quantile(q) * stepsPerTarget
			before := float64(all[int(q*float64(len(all)))-1])
			if got < before*15/16-1 || got > want*17/16+1 {
				t.Fatalf("quantile %v is %v, want about %v", q, got, want)
			}
		}
	}
}

// A share that ends with a bucket is within it, and not at the next latency.
func TestQuantileBetweenTwoLatencies(t *testing.T) {
	var d distribution
	d.weight[5], d.weight[100], d.total = 10, 10, 20
	if got := d.quantile(0.5) * stepsPerTarget; got != float64(lowest(6)) {
		t.Errorf("the median is %v, want %d", got, lowest(6))
	}
}
