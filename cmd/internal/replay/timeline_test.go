package replay

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestTimelineAgreesWithCounting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, reach := range []int64{10, 500, 2_000, 100_000, 5_000_000_000} {
		line, seconds := new(timeline), make([]int64, 5000)
		for i := range seconds {
			seconds[i] = reach/3 + rng.Int64N(reach)
		}
		slices.Sort(seconds)
		want := make([]bin, maxBins)
		for i, second := range seconds {
			line.add(second, i%3 > 0)
		}
		for i, second := range seconds {
			n := second/int64(line.width()/time.Second) - line.first
			if i%3 > 0 {
				want[n].granted++
			} else {
				want[n].refused++
			}
		}
		n := len(line.bins)
		if n > maxBins || line.bins[0] == (bin{}) || line.bins[n-1] == (bin{}) ||
			!slices.Equal(line.bins, want[:n]) {
			t.Errorf("%d bins of %v: %v, want %v", n, line.width(), line.bins, want)
		}
	}
}

func TestTimelineIsAsFineAsItCanBe(t *testing.T) {
	line := new(timeline)
	line.add(1001, true)
	line.add(1001+maxBins-1, true)
	if line.width() != time.Second {
		t.Errorf("%d s: bins of %v, want 1s", maxBins, line.width())
	}
	line.add(1001+maxBins, true)
	if line.width() != 5*time.Second || line.first != 1001/5 || len(line.bins) != 103 {
		t.Errorf("a second more: %d bins from %d on of %v, want 5s", len(line.bins), line.first,
			line.width())
	}
}
