package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/internal/svgchart"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// worst returns the worst window of the key refused most, and its lens.
func worst(t *testing.T, o Options, log string) (*lens, *window) {
	t.Helper()
	r := drawn(t, o, input("a.log", log)).replayer
	return r.lens, r.ranking.most(1)[0].Value.zoom.mostRefused()
}

func TestLevelsAreASaw(t *testing.T) {
	r, err := newReplayer(func() Options {
		o := options(t, "0.5", 3)
		o.Picture = true
		return o
	}())
	if err != nil {
		t.Fatal(err)
	}
	const start = 1431856810
	for _, second := range []int64{0, 0, 0, 0, 0, 0, 0, 2, 1, 10} {
		p := pending{time: (start + second) * 1e9, cost: 1}
		if err := r.decide(p, []byte("a"), second == 1); err != nil {
			t.Fatal(err)
		}
	}
	l, w := r.lens, r.ranking.most(1)[0].Value.zoom.mostRefused()
	var got strings.Builder
	for _, p := range l.levelsOver(w) {
		fmt.Fprint(&got, p.X-start, " ", p.Y, ", ")
	}
	// Seven requests of three tokens, and 1 token after 2 s. The late request is drawn at that time.
	const want = "0 3, 0 0, 2 1, 2 1, 2 0, 8 3, 10 3, 10 3, 10 2, 12 3, "
	if got.String() != want {
		t.Errorf("got %s, want %s", &got, want)
	}
	points, radii := w.refusals()
	if fmt.Sprint(points[1:], radii) != fmt.Sprintf("[{%v 0}] [3 2]", start+2.0) {
		t.Errorf("refusals at %v with radii of %v", points, radii)
	}
	const value = "2015-05-17 10:00:10: 3.0 tokens, then 0.0, 4 refused"
	if text := w.values(start + 12)[0].Text; text != value {
		t.Errorf("the first value is %q, want %q", text, value)
	}
}

// The numbers beside the circles are the greatest ones, and do not overlap.
func TestCountsOfRefusals(t *testing.T) {
	w := window{steps: []step{
		{last: 1e9, refused: 3}, {last: 2e9, refused: 5}, {last: 3e9}, {last: 4e9, refused: 1},
		{last: 8e9, refused: 1200},
	}}
	for distance, want := range map[float64]string{
		0.5: "1,200 at 8, 5 at 2, 3 at 1, 1 at 4, ", 1.5: "1,200 at 8, 5 at 2, 1 at 4, ",
		7.5: "1,200 at 8, ",
	} {
		var got strings.Builder
		points, texts := w.counts(distance)
		for i, text := range texts {
			fmt.Fprintf(&got, "%s at %v, ", text, points[i].X)
		}
		if got.String() != want {
			t.Errorf("%v seconds apart: %s, want %s", distance, &got, want)
		}
	}
}

// Before the first request of a window the bucket was full, or nothing is known.
func TestLevelsBeforeAWindow(t *testing.T) {
	l := newLens(mustRate(t, "1"), 5)
	for first, want := range map[float64]string{5: "[{7 5} {10 5} {10 4}]", 4: "[{10 4} {10 4}]"} {
		levels := []svgchart.Point{{X: 10, Y: first}, {X: 10, Y: 4}}
		if got := fmt.Sprint(l.withLead(levels, 3)); got != want {
			t.Errorf("from %v tokens: %s, want %s", first, got, want)
		}
	}
}

func TestTheWorstWindowHasTheMostRefusals(t *testing.T) {
	burst := func(second, n int) string { return strings.Repeat(line("a", second, 1), n) }
	for _, tt := range []struct {
		name, log        string
		start            int64 // after 10:00
		granted, refused uint64
	}{
		{"the only one", burst(5, 4), 5, 2, 2},
		{"the greatest", burst(5, 4) + burst(100, 6) + burst(200, 5), 100, 2, 4},
		{"the first of equals", burst(5, 4) + burst(100, 4), 5, 2, 2},
		{"a minute", burst(5, 4) + burst(64, 3) + burst(65, 9), 65, 1, 8},
		{"from a full bucket", burst(5, 1) + burst(50, 2) + burst(51, 3), 50, 3, 2},
	} {
		_, w := worst(t, options(t, "1", 2), tt.log)
		if w.start != (1431856800+tt.start)*1e9 || w.granted != tt.granted || w.refused != tt.refused {
			t.Errorf("%s: from %v, %d granted, %d refused; want %d, %d, %d", tt.name,
				time.Unix(0, w.start).UTC(), w.granted, w.refused, tt.start, tt.granted, tt.refused)
		}
	}
}

func TestAWindowIsAsLongAsARefill(t *testing.T) {
	for _, tt := range []struct {
		rate  string
		burst Burst
		want  time.Duration
	}{
		{"1", 5, time.Minute}, {"1", 61, 61 * time.Second}, {"1/24h", 3, 3 * day},
		{"1/100000h", 1 << 30, 36500 * day},
	} {
		if got := newLens(mustRate(t, tt.rate), tt.burst).width; got != int64(tt.want) {
			t.Errorf("%s, %d: %v, want %v", tt.rate, tt.burst, time.Duration(got), tt.want)
		}
	}
}

func TestWindowsAreBounded(t *testing.T) {
	if size := 2 * maxSteps * unsafe.Sizeof(step{}); size > 8<<10 {
		t.Errorf("the windows of a key take %d bytes, want at most 8 KiB", size)
	}
}

// The levels in the picture are the levels of the bucket, at any rate and cost, also if requests
// are late.
func TestLevelsAgreeWithTheLimiter(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		rate := mustRate(t, []string{"0.3", "7/m", "5", "100"}[rng.IntN(4)])
		burst := 1 + rng.IntN(40)
		now := time.Unix(1431856800, 0)
		limiter, err := cas.New[string](rate.limit(burst), tb.WithClock(func() time.Time { return now }))
		if err != nil {
			t.Fatal(err)
		}
		l := newLens(rate, Burst(burst))
		z := (&zoom{}).emptied()
		latest := now
		for range 500 {
			latest = latest.Add(time.Duration(rng.Int64N(int64(time.Second))) * time.Duration(rng.IntN(3)))
			now = latest.Add(-time.Duration(rng.IntN(4)/3) * time.Second)
			cost := []float64{1, 0.7, 3}[rng.IntN(3)]
			d, err := limiter.AllowCost(t.Context(), "a", cost)
			if err != nil {
				t.Fatal(err)
			}
			level, err := limiter.Level(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			l.add(&z, now.UnixNano(), cost, d)
			got := l.refilled(z.level, max(now.UnixNano(), z.own)-z.own)
			if math.Abs(got-level.Tokens) > 1e-3 {
				t.Fatalf("%s, burst %d: %v tokens, want %v", rate, burst, got, level.Tokens)
			}
		}
		for _, w := range []*window{&z.present, &z.worst} {
			checkWindow(t, l, w)
		}
	}
}

// checkWindow fails if a window has too many steps, or levels that no bucket has.
func checkWindow(t *testing.T, l *lens, w *window) {
	t.Helper()
	if len(w.steps) > maxSteps {
		t.Errorf("%d steps", len(w.steps))
	}
	for i, s := range w.steps {
		if s.first > s.last || i > 0 && w.steps[i-1].last > s.first || s.first-w.start >= l.width ||
			float64(max(s.before, s.after)) > l.burst || min(s.before, s.after) < 0 {
			t.Errorf("step %d is %+v", i, s)
		}
	}
}

// Where the table evicted a bucket, the limiter has more tokens than the requests of the key left.
func TestLevelsFollowTheDecisions(t *testing.T) {
	l := newLens(mustRate(t, "1"), 5)
	z := (&zoom{}).emptied()
	l.add(&z, 1e9, 5, tb.Decision{Allowed: true, Remaining: 0})
	l.add(&z, 2e9, 1, tb.Decision{Allowed: true, Remaining: 4})
	if w := z.present; z.level != 4 || w.steps[len(w.steps)-1].before != 5 {
		t.Errorf("%+v, want 5 tokens before the second request and 4 after it", z)
	}
}

// A key may have sent requests before it was tracked.
func TestAWindowMayBeginWithAnEmptyBucket(t *testing.T) {
	l := newLens(mustRate(t, "1"), 5)
	z := (&zoom{}).emptied()
	l.add(&z, 5e9, 1, tb.Decision{Remaining: 0})
	if w := z.present; w.start != 5e9 || w.steps[0].before > 1 || w.steps[0].after > 1 {
		t.Errorf("%+v, want at most 1 token at 5 s", w)
	}
}
