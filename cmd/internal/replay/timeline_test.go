package replay

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestTimelineAgreesWithCounting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, reach := range []int64{10, 500, 2_000, 100_000, 5_000_000_000} {
		line, exact := newTimeline(), make(map[int64]bin)
		for range 5_000 {
			second := rng.Int64N(reach)
			granted := rng.IntN(2) == 0
			line.add(second, granted)
			b := exact[second]
			if granted {
				b.granted++
			} else {
				b.refused++
			}
			exact[second] = b
		}
		checkTimeline(t, line, exact)
	}
}

func checkTimeline(t *testing.T, line *timeline, exact map[int64]bin) {
	t.Helper()
	if line.hi-line.lo >= maxBins {
		t.Errorf("%d bins in use", line.hi-line.lo+1)
	}
	if *line.bin(line.lo) == (bin{}) || *line.bin(line.hi) == (bin{}) {
		t.Errorf("bins %d to %d in use, but the outer ones are empty", line.lo, line.hi)
	}
	want := make(map[int64]bin)
	for second, b := range exact {
		n := second / int64(line.width()/time.Second)
		w := want[n]
		want[n] = bin{granted: w.granted + b.granted, refused: w.refused + b.refused}
	}
	for n := line.lo; n <= line.hi; n++ {
		got := *line.bin(n)
		if got.peak = 0; got != want[n] {
			t.Fatalf("bin %d of %s: %v, want %v", n, line.width(), got, want[n])
		}
		delete(want, n)
	}
	if len(want) > 0 {
		t.Errorf("bins not in use: %v", want)
	}
}

func TestTimelineIsAsFineAsItCanBe(t *testing.T) {
	line := newTimeline()
	line.add(1000, true)
	line.add(1000+maxBins-1, true)
	if line.width() != time.Second {
		t.Errorf("%d s: bins of %v, want 1s", maxBins, line.width())
	}
	line.add(999, true) // to the left
	if line.width() != 5*time.Second || line.lo != 999/5 || line.hi != (1000+maxBins-1)/5 {
		t.Errorf("a second more: bins %d to %d of %v, want 5s and no empty ones outside",
			line.lo, line.hi, line.width())
	}
}
