package replay

import (
	"fmt"
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

// The table has each interval of the log, and the requests and the refusals in it.
func TestTimelineIsAsFineAsItCanBe(t *testing.T) {
	line := new(timeline)
	line.add(1001, true)
	line.add(1001+maxBins-1, false)
	if line.width() != time.Second {
		t.Errorf("%d s: bins of %v, want 1s", maxBins, line.width())
	}
	line.add(1001+maxBins, true)
	table := line.table(true)
	got := fmt.Sprint(len(table.Rows), line.first, table.Title, table.Rows[102])
	if want := "103 200Requests in each 5s{1970-01-01 00:25:10  [2 1]}"; got != want {
		t.Errorf("a second more: %s, want %s", got, want)
	}
}
