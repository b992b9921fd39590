package cas

import (
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// holder is a limiter of 10 tokens, of which one is supplied each second, and its clock.
type holder struct {
	AllowAt  func(time.Time, string, float64) (tb.Decision, error)
	Hold     func(context.Context, string, time.Time) error
	Reserve  func(context.Context, string, float64) (tb.Reservation, error)
	Restore  func(iter.Seq2[string, tb.State]) error
	Snapshot func() iter.Seq2[string, tb.State]
	now      time.Time
}

func holders() map[string]*holder {
	ofCAS, ofMutex := &holder{now: time.Unix(1e9, 0)}, &holder{now: time.Unix(1e9, 0)}
	c := NewTokenBucket(10, 1, tb.WithClock(func() time.Time { return ofCAS.now }))
	m := mutex.NewTokenBucket(10, 1, tb.WithClock(func() time.Time { return ofMutex.now }))
	ofCAS.AllowAt, ofCAS.Hold, ofCAS.Reserve = c.AllowAt, c.Hold, c.Reserve
	ofCAS.Restore, ofCAS.Snapshot = c.Restore, c.Snapshot
	ofMutex.AllowAt, ofMutex.Hold, ofMutex.Reserve = m.AllowAt, m.Hold, m.Reserve
	ofMutex.Restore, ofMutex.Snapshot = m.Restore, m.Snapshot
	return map[string]*holder{"cas": ofCAS, "mutex": ofMutex}
}

// Of the hold that a bucket has and the hold of its state the later one remains, and of their debts
// the one that is paid later.
func TestRestoreOfHolds(t *testing.T) {
	const never = 0
	for _, tt := range []struct {
		name     string
		hold     time.Duration // before Restore
		debt     int           // before that
		at, held time.Duration // of the state, from now on
		tokens   float64
		retry    time.Duration // of a call of one token
	}{
		{"a new key", never, 0, -10 * time.Second, time.Minute, 0, 61 * time.Second},
		{"a new key in debt", never, 0, -time.Hour, time.Minute, -2.5, 63500 * time.Millisecond},
		{"a hold that is over", never, 0, -time.Hour, -4 * time.Second, -5, 2 * time.Second},
		{"a clock that was set back", never, 0, time.Hour, 61 * time.Minute, 0, 61 * time.Second},
		{"an earlier hold", 2 * time.Minute, 0, 0, time.Minute, -5, 121 * time.Second},
		{"a later hold", time.Minute, 0, 0, 2 * time.Minute, -5, 126 * time.Second},
		{"no hold", time.Minute, 0, 0, never, 5, 61 * time.Second},
		{"no hold, in debt", time.Minute, 0, 0, never, -100, 101 * time.Second},
		{"no hold, and a debt before the end", time.Minute, 0, 0, never, -30, 61 * time.Second},
		{"of a bucket in debt", never, 8, 0, 2 * time.Second, 0, 9 * time.Second},
		{"of a bucket in debt, until later", never, 8, 0, time.Minute, 0, 61 * time.Second},
		{"of a bucket in less debt", never, 8, 0, 2 * time.Second, -7, 10 * time.Second},
	} {
		for kind, l := range holders() {
			if tt.debt > 0 {
				_, _ = l.AllowAt(l.now, "a", 10)
				_, _ = l.Reserve(t.Context(), "a", float64(tt.debt))
			}
			if err := l.Hold(t.Context(), "a", l.now.Add(tt.hold)); err != nil {
				t.Fatal(err)
			}
			s := tb.State{Tokens: tt.tokens, At: l.now.Add(tt.at)}
			if tt.held != never {
				s.Held = l.now.Add(tt.held)
			}
			if err := l.Restore(maps.All(map[string]tb.State{"a": s})); err != nil {
				t.Fatalf("%s, %s: %v", tt.name, kind, err)
			}
			d, err := l.AllowAt(l.now, "a", 1)
			if err != nil || d.Allowed || d.RetryAfter != tt.retry {
				t.Errorf("%s, %s: %+v, %v, want refused for %v", tt.name, kind, d, err, tt.retry)
			}
			s = maps.Collect(l.Snapshot())["a"]
			want := max(tt.hold, min(tt.held, tt.held-tt.at))
			if want > 0 && !s.Held.Equal(l.now.Add(want)) || want <= 0 && !s.Held.IsZero() {
				t.Errorf("%s, %s: %+v, want it held for %v", tt.name, kind, s, want)
			}
		}
	}
}

func TestSnapshotOfHolds(t *testing.T) {
	for kind, l := range holders() {
		hold := func(key string, d time.Duration) {
			if err := l.Hold(t.Context(), key, l.now.Add(d)); err != nil {
				t.Fatal(err)
			}
		}
		hold("a", time.Second) // the first call starts the clock
		hold("b", time.Minute)
		hold("c", math.MaxInt64)
		_, _ = l.AllowAt(l.now, "d", 10)
		_, _ = l.Reserve(t.Context(), "d", 7)
		hold("d", 3*time.Second)
		l.now = l.now.Add(2 * time.Second)
		tooLong := tb.State{At: l.now, Held: l.now.Add(math.MaxInt64)} // the clock ends before
		if err := l.Restore(maps.All(map[string]tb.State{"e": tooLong})); err != nil {
			t.Fatal(err)
		}
		got := maps.Collect(l.Snapshot())
		for key, want := range map[string]tb.State{
			"a": {Tokens: 1},
			"b": {Held: l.now.Add(58 * time.Second)},
			"c": {Held: l.now.Add(math.MaxInt64 - 2*time.Second)},
			"d": {Tokens: -4, Held: l.now.Add(time.Second)},
			"e": {Held: l.now.Add(math.MaxInt64 - 2*time.Second)},
		} {
			if want.At = l.now; got[key] != want || want.Validate() != nil {
				t.Errorf("%s, %s: %+v, want %+v", kind, key, got[key], want)
			}
		}
	}
}

func TestHoldOfABucket(t *testing.T) {
	now := time.Unix(1e9, 0)
	limit := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}
	b, err := NewBucket(limit, tb.WithClock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	retry := func(want time.Duration) {
		t.Helper()
		if d := b.Allow(); d.Allowed || d.RetryAfter != want || b.Peek() != d {
			t.Errorf("%+v, and Peek %+v, want refused for %v", d, b.Peek(), want)
		}
	}
	b.Hold(now.Add(10 * time.Second)) // before the first grant
	retry(11 * time.Second)
	b.AddAt(now, 5)
	retry(11 * time.Second)
	b.AddAt(now, -3)
	retry(14 * time.Second)
	b.AddAt(now, 2)
	retry(12 * time.Second)
	b.Hold(now.Add(20 * time.Second))
	retry(21 * time.Second)
	// It remembers one limit, and the hold stays.
	for i := range 5 {
		now = now.Add(time.Second)
		if err := b.SetLimit(tb.Limit{Capacity: 10, Tokens: int64(i + 2), Per: time.Second}); err != nil {
			t.Fatal(err)
		}
		retry(time.Duration(19-i)*time.Second + (time.Second+time.Duration(i+1))/time.Duration(i+2))
	}
	if n := len(b.layout().eras); n > 1 {
		t.Errorf("it remembers %d limits, want 1", n)
	}
	now = now.Add(15*time.Second + time.Second/2) // half a second after the hold
	for range 3 {                                 // the first ends an era in which the hold was
		for _, tokens := range []int64{1, 2} {
			if err := b.SetLimit(tb.Limit{Capacity: 10, Tokens: tokens, Per: time.Hour}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if l := b.Level(); l.Tokens != 3 { // half a second at 6 a second
		t.Errorf("%+v, want 3 tokens", l)
	}
}

// A key that is held goes through a tier of large units. The debt behind the hold keeps its parts.
func TestHeldDebtIsNotRoundedByATier(t *testing.T) {
	now := time.Unix(0, 0)
	fine := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}
	coarse := tb.Limit{Capacity: 1 << 30, Tokens: 1, Per: time.Second} // its unit is a token
	clock := tb.WithClock(func() time.Time { return now })
	l, err := NewTiered[string]([]tb.Limit{fine, coarse}, clock)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := l.Reserve(t.Context(), "a", 1)
	err = l.Hold(t.Context(), "a", now.Add(10*time.Second))
	if err := errors.Join(err, r.Settle(1.25)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tier int
		wait time.Duration
	}{{0, 11250 * time.Millisecond}, {1, 12 * time.Second}, {0, 11250 * time.Millisecond}} {
		c, _ := l.ChargeIn(tt.tier, "a", 1)
		if d, err := c.Take(now); err != nil || d.Allowed || d.RetryAfter != tt.wait {
			t.Errorf("tier %d: %+v, %v, want refused for %v", tt.tier, d, err, tt.wait)
		}
	}
}

// Refusals of a held key write and allocate nothing. The time of a hold is recorded as no debt, so
// that eras are forgotten as ever.
func TestHoldWritesOnce(t *testing.T) {
	f := newFixture(t)
	limit := tb.Limit{Capacity: 10, Tokens: 1e9, Per: time.Second}
	until := time.Unix(0, 0).Add(100 * time.Hour)
	if err := f.Hold(t.Context(), "a", until); err != nil {
		t.Fatal(err)
	}
	waits, _ := f.Charge("a", 2)
	waits.MayWait(tb.Never)
	d, _ := waits.Take(time.Unix(0, 0))
	if owed := f.limits.owed.Load(); !d.Allowed || owed > 4<<20 {
		t.Errorf("%+v, %d millionths are owed behind the hold, want granted and 2,000,000", d, owed)
	}
	if err := f.SetLimit(limit); err != nil {
		t.Fatal(err)
	}
	c := f.cell("a")
	word := c.word.Load()
	for range 3 {
		if n := testing.AllocsPerRun(100, func() { _, _ = f.Allow(t.Context(), "a") }); n > 0 {
			t.Errorf("%v allocations of a refusal, want 0", n)
		}
		if f.cell("a") != c || c.word.Load() != word {
			t.Error("a refusal has written")
		}
		for i := range 100 {
			f.now += time.Second
			limit.Tokens = 1e9 - int64(i%2)
			if err := f.SetLimit(limit); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(f.limits.present(0).eras); n > 2*keptEras {
		t.Errorf("%d eras are remembered, want at most %d", n, 2*keptEras)
	}
}

func TestHoldOfANaN(t *testing.T) {
	l, err := New[float64](tb.Limit{Capacity: 1, Tokens: 1, Per: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []time.Duration{time.Hour, -time.Hour} {
		err := l.Hold(t.Context(), math.NaN(), time.Now().Add(d))
		if !errors.Is(err, tb.ErrInvalidKey) || l.Len() != 0 {
			t.Errorf("%v, %d keys, want ErrInvalidKey and none", err, l.Len())
		}
	}
}
