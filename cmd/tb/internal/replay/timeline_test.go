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
		var key lows
		least := make(map[int64]int64)
		for range 5_000 {
			second := rng.Int64N(reach)
			granted, left := rng.IntN(2) == 0, rng.IntN(100)
			line.add(second, granted)
			key.add(second, line.shift, left)
			b := exact[second]
			if granted {
				b.granted++
			} else {
				b.refused++
			}
			exact[second] = b
			if l, ok := least[second]; !ok || int64(left) < l {
				least[second] = int64(left)
			}
		}
		checkTimeline(t, line, exact)
		key.coarsen(line.shift)
		checkLevels(t, &key, least)
	}
}

func checkTimeline(t *testing.T, line *timeline, exact map[int64]bin) {
	t.Helper()
	if line.hi-line.lo >= maxBins {
		t.Errorf("%d bins in use", line.hi-line.lo+1)
	}
	if line.bin(line.lo).total() == 0 || line.bin(line.hi).total() == 0 {
		t.Errorf("bins %d to %d in use, but the outer ones are empty", line.lo, line.hi)
	}
	want := make(map[int64]bin)
	for second, b := range exact {
		n := second / int64(line.width()/time.Second)
		w := want[n]
		want[n] = bin{w.granted + b.granted, w.refused + b.refused}
	}
	for n := line.lo; n <= line.hi; n++ {
		if got := *line.bin(n); got != want[n] {
			t.Fatalf("bin %d of %s: %v, want %v", n, line.width(), got, want[n])
		}
		delete(want, n)
	}
	if len(want) > 0 {
		t.Errorf("bins not in use: %v", want)
	}
}

func checkLevels(t *testing.T, key *lows, exact map[int64]int64) {
	t.Helper()
	want := make(map[int64]int64)
	for second, left := range exact {
		n := second >> key.shift
		if w, ok := want[n]; !ok || left < w {
			want[n] = left
		}
	}
	if len(key.points) != len(want) || len(key.points) > maxBins {
		t.Fatalf("%d levels, want %d", len(key.points), len(want))
	}
	for i, p := range key.points {
		if p.tokens != want[p.bin] || i > 0 && key.points[i-1].bin >= p.bin {
			t.Fatalf("level %d is %v, want %d tokens, in the order of time", i, p, want[p.bin])
		}
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
	if line.width() != 2*time.Second || line.lo != 999/2 || line.hi != (1000+maxBins-1)/2 {
		t.Errorf("a second more: bins %d to %d of %v, want 2s and no empty ones outside",
			line.lo, line.hi, line.width())
	}
}
