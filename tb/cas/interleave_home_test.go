package cas

import (
	"runtime"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// stoppedHome is a Bucket whose caller is stopped once, before a step, while meanwhile runs.
type stoppedHome struct {
	*Bucket
	step      step
	skip      int // such steps before
	meanwhile func()
}

type step int

const (
	loadsCell   step = iota
	loadsLayout      // after the cell
	views            // between the load of a word and its swap
)

func (h *stoppedHome) stop(s step) {
	if f := h.meanwhile; f != nil && s == h.step {
		if h.skip--; h.skip < 0 {
			h.meanwhile = nil
			f()
		}
	}
}

func (h *stoppedHome) load() *cell {
	h.stop(loadsCell)
	return h.Bucket.load()
}

func (h *stoppedHome) layoutOf(c *cell) *layout {
	h.stop(loadsLayout)
	return h.Bucket.layoutOf(c)
}

func (h *stoppedHome) shared() *limits {
	h.stop(views)
	return h.Bucket.shared()
}

// newStopped returns the home of a bucket of 10 tokens, refilled at one an hour, of which 1 is
// taken.
func newStopped(t *testing.T) *stoppedHome {
	t.Helper()
	now := func() time.Time { return time.Unix(0, 0) }
	b, err := NewBucket(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Hour}, tb.WithClock(now))
	if err != nil {
		t.Fatal(err)
	}
	if d := b.Allow(); !d.Allowed {
		t.Fatalf("%+v, want granted", d)
	}
	return &stoppedHome{Bucket: b}
}

func (h *stoppedHome) takes(t *testing.T, n int) {
	t.Helper()
	if d, err := h.AllowN(float64(n)); err != nil || !d.Allowed {
		t.Errorf("%d tokens: %+v, %v, want granted", n, d, err)
	}
}

func (h *stoppedHome) has(t *testing.T, tokens float64) {
	t.Helper()
	if got := h.Level().Tokens; got != tokens || h.meanwhile != nil {
		t.Errorf("%v tokens, stopped %t, want %v", got, h.meanwhile == nil, tokens)
	}
}

// A grant between the slow path's look at a word and its swap is not lost.
func TestSlowGrantKeepsAnotherGrant(t *testing.T) {
	h := newStopped(t)
	h.step, h.meanwhile = views, func() { h.takes(t, 3) }
	o, _, err := spend(h, h.times().read(), request{tokens: 1})
	if err != nil || !o.Allowed {
		t.Fatalf("%+v, %v, want granted", o.Decision, err)
	}
	h.has(t, 10-1-3-1)
}

func TestRefundKeepsAnotherGrant(t *testing.T) {
	h := newStopped(t)
	h.takes(t, 5)
	h.step, h.skip, h.meanwhile = views, 1, func() { h.takes(t, 3) } // settle has them first
	settle(h, 5, 2)
	h.has(t, 10-1-2-3)
}

// The limit changes and the bucket moves just before a refund looks at it.
func TestRefundOfABucketThatHasMoved(t *testing.T) {
	for skip := range 2 { // settle loads the cell once before
		h := newStopped(t)
		h.takes(t, 5)
		h.step, h.skip, h.meanwhile = loadsCell, skip, func() {
			if err := h.SetLimit(tb.Limit{Capacity: 1000, Tokens: 1, Per: time.Hour}); err != nil {
				t.Error(err)
			}
			h.takes(t, 1)
		}
		settle(h, 5, 2)
		h.has(t, 10-1-2-1)
	}
}

// The limit changes to larger units while a settlement is under way. What the bucket cannot pay is
// counted in the units in which it was charged.
func TestUnpaidTokensAreCountedInTheUnitsOfTheCharge(t *testing.T) {
	h := newStopped(t)
	h.step, h.skip, h.meanwhile = loadsLayout, 1, func() {
		if err := h.SetLimit(tb.Limit{Capacity: 100, Tokens: 1, Per: time.Hour}); err != nil {
			t.Error(err)
		}
	}
	settle(h, 1, 1000)
	h.has(t, -100)
	if got := h.limits.unpaid.Tokens(); got != 999-9-100 {
		t.Errorf("%v tokens are unpaid, want %d", got, 999-9-100)
	}
}

// A call on a bucket whose hold has ended is stopped before its swap. Meanwhile a SetLimit ends its
// era, at a reading from before the end of the hold, and another one ends the next era.
func TestSlowGrantOfAnEraBeforeTheLast(t *testing.T) {
	h, start := newStopped(t), time.Unix(0, 0)
	h.Hold(start.Add(time.Hour))
	h.step, h.skip, h.meanwhile = views, 1, func() {
		for i, at := range []time.Duration{time.Hour - 1, 4 * time.Hour} {
			limit := tb.Limit{Capacity: 10 * (i + 2), Tokens: 1, Per: time.Hour}
			if err := h.SetLimitAt(start.Add(at), limit); err != nil {
				t.Error(err)
			}
		}
	}
	o, _, err := spend(h, h.clock.instant(start.Add(4*time.Hour)), request{tokens: 3})
	if err != nil || !o.Allowed || h.meanwhile != nil {
		t.Fatalf("%+v, %v, stopped %t, want granted", o.Decision, err, h.meanwhile == nil)
	}
	if got := h.LevelAt(start.Add(5 * time.Hour)).Tokens; got != 1 {
		t.Errorf("%v tokens, want the 3 and 1 since the hold less the 3 that were taken", got)
	}
}

// A SetLimit is stopped where it reads the clock, while another one is called. Each ends an era.
func TestTwoChangesAtOnceEndTwoEras(t *testing.T) {
	var meanwhile func()
	l, err := New[string](tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second},
		tb.WithClock(func() time.Time {
			if f := meanwhile; f != nil {
				meanwhile = nil
				f()
			}
			return time.Unix(0, 0)
		}))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	meanwhile = func() {
		go func() { done <- l.SetLimit(tb.Limit{Capacity: 20, Tokens: 1, Per: time.Second}) }()
		for range 100_000 { // unless it waits for the first one, it is done by then
			if runtime.Gosched(); len(done) > 0 {
				break
			}
		}
	}
	if err := l.SetLimit(tb.Limit{Capacity: 30, Tokens: 1, Per: time.Second}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if m := l.limits.one.Load(); m.owner>>tierBits != 2 || len(m.eras) != 2 {
		t.Errorf("era %d with %d before, want 2 with 2", m.owner>>tierBits, len(m.eras))
	}
}

// AddAt is stopped before it makes the first cell of a bucket, which is used meanwhile under
// another limit.
func TestAddAtAfterTheFirstUse(t *testing.T) {
	now := time.Unix(0, 0)
	b, err := NewBucket(tb.Limit{Capacity: 100, Tokens: 1, Per: time.Second},
		tb.WithClock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	m := b.layoutOf(nil)
	if err := b.SetLimit(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}); err != nil {
		t.Fatal(err)
	}
	b.Allow()
	b.fill(m, b.clock.read())
	if got := b.Level().Tokens; got != 9 {
		t.Errorf("%v tokens, want 9", got)
	}
}
