package cas

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestTimeOfABucketBeginsWithItsFirstGrant(t *testing.T) {
	b, err := NewBucket(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for _, call := range []struct {
		reading time.Duration
		n       int
		granted bool
	}{
		{10 * time.Second, 11, false},
		{5 * time.Second, 10, true},
		{10 * time.Second, 6, false},
		{10 * time.Second, 5, true},
	} {
		d, err := b.AllowAt(start.Add(call.reading), float64(call.n))
		if err != nil || d.Allowed != call.granted {
			t.Errorf("%d tokens at %v: %+v, %v, want granted %t",
				call.n, call.reading, d, err, call.granted)
		}
	}
}

// A limit that is impossible does not begin the time of a bucket.
func TestImpossibleLimitDoesNotBeginTheTimeOfABucket(t *testing.T) {
	b, err := NewBucket(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetLimit(tb.Limit{}); err == nil || b.load() != nil {
		t.Errorf("SetLimit returned %v, and the bucket has the cell %v, want an error and none",
			err, b.load())
	}
}

// A call has sealed the cell of a bucket, and is stalled before it moves the bucket. No other call
// waits for it: if one did, this test would not end.
func TestStalledMoveOfABucketStallsNoOtherCall(t *testing.T) {
	b, err := NewBucket(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second},
		tb.WithClock(func() time.Time { return time.Unix(0, 0) }))
	if err != nil {
		t.Fatal(err)
	}
	if d, err := b.AllowN(4); err != nil || !d.Allowed {
		t.Fatalf("AllowN returned %+v, %v", d, err)
	}
	c := b.load()
	c.word.Store(c.word.Load() | sealBit)
	if l := b.Level(); l.Tokens != 6 {
		t.Errorf("%v tokens, want 6", l.Tokens)
	}
	if d := b.Peek(); !d.Allowed || d.Remaining != 5 {
		t.Errorf("Peek returned %+v, want 5 tokens left", d)
	}
	if b.load() != c {
		t.Error("a call that takes nothing has moved the bucket")
	}
	if d := b.Allow(); !d.Allowed || d.Remaining != 5 {
		t.Errorf("Allow returned %+v, want 5 tokens left", d)
	}
}

func TestUnusedBucketGetsNoBurstFromALargerCapacity(t *testing.T) {
	now := time.Unix(0, 0)
	b, err := NewBucket(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second},
		tb.WithClock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetLimit(tb.Limit{Capacity: 100, Tokens: 1, Per: time.Second}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(3 * time.Second)
	if l := b.Level(); l.Tokens != 13 {
		t.Errorf("%v tokens, want the 10 that it had and 3", l.Tokens)
	}
}

// The clock jumps back between the readings of SetLimit: of the bucket's first cell, and of the
// change.
func TestClockOfABucketJumpsDuringSetLimit(t *testing.T) {
	const month = 30 * 24 * time.Hour
	readings := []time.Duration{0, month, 0}
	clock := func() time.Time {
		now := readings[0]
		if len(readings) > 1 {
			readings = readings[1:]
		}
		return time.Unix(0, 0).Add(now)
	}
	b, err := NewBucket(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}, tb.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	b.Peek() // starts the clock
	if err := b.SetLimit(tb.Limit{Capacity: 1000, Tokens: 1, Per: time.Second}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		now    time.Duration
		tokens float64
	}{{0, 10}, {month, 10}, {month + 5*time.Second, 15}} {
		readings = []time.Duration{tt.now}
		if l := b.Level(); l.Tokens != tt.tokens {
			t.Errorf("at %v: %v tokens, want %v", tt.now, l.Tokens, tt.tokens)
		}
	}
}

// A Bucket forgets the limits before the last one, and a key of a Limiter does not. Under random
// changes, with late readings and units of other sizes, both have the same tokens and the same
// times.
func TestBucketAndKeyAgreeOnChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	capacities := []int{1, 83, 84, 8_388, 1 << 20, 1 << 23, 100_000_000}
	periods := []time.Duration{1, 3, 7, 1000, time.Millisecond}
	randomLimit := func() tb.Limit {
		per := periods[rng.IntN(len(periods))]
		tokens := 1 + rng.Int64N(int64(per))
		return tb.Limit{Capacity: capacities[rng.IntN(len(capacities))], Tokens: tokens, Per: per}
	}
	for program := range 5_000 {
		start := time.Unix(0, 0)
		now := start
		limit, clock := randomLimit(), tb.WithClock(func() time.Time { return now })
		b, err := NewBucket(limit, clock)
		l, err2 := New[string](limit, clock)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		for step := range 20 {
			now = now.Add(time.Duration(rng.IntN(9) - 3))
			if step > 0 && rng.IntN(3) == 0 {
				next := randomLimit()
				if err := errors.Join(b.SetLimit(next), l.SetLimit(next)); err != nil {
					t.Fatal(err)
				}
			} else {
				cost := max(1e-6, rng.Float64()*float64(b.Limit().Capacity))
				one, err := b.Charge(cost)
				other, err2 := l.Charge("a", cost)
				if err := errors.Join(err, err2); err != nil {
					t.Fatal(err)
				}
				if rng.IntN(3) == 0 {
					one.MayWait(time.Hour)
					other.MayWait(time.Hour)
				}
				d, _ := one.Take(now)
				if want, _ := other.Take(now); d != want || one.Delay() != other.Delay() {
					t.Fatalf("program %d, step %d: %+v after %v, and a key %+v after %v",
						program, step, d, one.Delay(), want, other.Delay())
				}
			}
			if step == 0 && b.load() == nil {
				break // a bucket without a grant keeps its capacity, and a key does not
			}
			if want, _ := l.Level(t.Context(), "a"); b.Level() != want {
				t.Fatalf("program %d, step %d: %+v, and a key %+v", program, step, b.Level(), want)
			}
		}
	}
}

// AddAt puts tokens in or takes them, and no test asks whether the bucket has them.
func TestAddAt(t *testing.T) {
	start := time.Now()
	for _, used := range []bool{false, true} {
		b, err := NewBucket(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if used {
			b.AllowAt(start, 1)
			b.AddAt(start, 1)
		}
		for i, c := range []struct {
			add, want float64
			at        time.Duration
		}{
			{0, 10, 0},
			{math.NaN(), 10, 0},
			{5, 10, 0},
			{-4.5, 5.5, 0},
			{-10, -4.5, 0},
			{0, -3.5, time.Second},
			{2.25, -1.25, time.Second},
			{2.25, 1, time.Second},
			{-1e9, 1 - 1e9, time.Second},
			{-2e9, -1 << 31, time.Second},
			{-1, -1 << 31, time.Second},
			{1 << 31, 0, time.Second},
			{3, 3, time.Second},
			{0, 5, 3 * time.Second},
			{math.MaxFloat64, 10, 3 * time.Second},
		} {
			at := start.Add(c.at)
			b.AddAt(at, c.add)
			if got := b.LevelAt(at).Tokens; got != c.want {
				t.Errorf("used %t, step %d: %v tokens, want %v", used, i, got, c.want)
			}
		}
	}
}
