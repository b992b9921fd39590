package fuzz

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// TestRestoredLimiterGoesOn restores snapshots into new limiters, of the other implementation too.
// They decide as the limiter that goes on.
func TestRestoredLimiterGoesOn(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	indebted, held := 0, 0
	for program := range 2000 {
		now := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC).Add(time.Duration(rng.Int64N(1e10)))
		limit := randomLimit(rng)
		clock := tb.WithClock(func() time.Time { return now })
		limiters := make([]limiter, 4)
		for i := range limiters {
			limiters[i] = newLimiter(t, i%2, limit, clock)
			_, _ = limiters[i].Peek(t.Context(), "") // all count units from the same instant
		}
		step := func(limiters []limiter) {
			now = now.Add(time.Duration(rng.ExpFloat64() * float64(limit.Per) / 4))
			key, n := string(rune('a'+rng.IntN(4))), 1+rng.IntN(limit.Capacity)
			if rng.IntN(8) == 0 {
				until := now.Add(time.Duration(rng.ExpFloat64() * float64(limit.Per)))
				for _, l := range limiters {
					if err := l.Hold(t.Context(), key, until); err != nil {
						t.Fatal(err)
					}
				}
			}
			reserve := rng.IntN(3) == 0
			answer := func(l limiter) (d tb.Decision, delay time.Duration) {
				if !reserve {
					d, _ = l.AllowN(t.Context(), key, float64(n))
					return d, 0
				}
				r, _ := l.Reserve(t.Context(), key, float64(n))
				return r.Decision, r.Delay()
			}
			want, wantDelay := answer(limiters[0])
			for i, l := range limiters[1:] {
				if got, delay := answer(l); got != want || delay != wantDelay {
					t.Fatalf("program %d, limit %+v, limiter %d: %+v, %v, want %+v, %v",
						program, limit, i+1, got, delay, want, wantDelay)
				}
			}
		}
		for range 10 {
			step(limiters[:2])
		}
		saved := maps.Collect(limiters[0].Snapshot())
		for key, s := range limiters[1].Snapshot() {
			if saved[key] != s {
				t.Fatalf("program %d: key %s is %+v in cas, %+v in mutex", program, key, saved[key], s)
			}
			if s.Tokens < 0 {
				indebted++
			}
			if !s.Held.IsZero() {
				held++
			}
		}
		now = now.Add(time.Duration(rng.Int64N(int64(limit.Per))))
		for _, l := range limiters[2:] {
			if err := l.Restore(maps.All(saved)); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			step(limiters)
		}
	}
	if min(indebted, held) < 500 {
		t.Errorf("%d buckets were saved in debt and %d held, too few", indebted, held)
	}
}

// newLimiter returns a limiter of tb/cas if kind is 0, and otherwise one of tb/mutex.
func newLimiter(t *testing.T, kind int, limit tb.Limit, opts ...tb.Option) limiter {
	if kind == 0 {
		l, err := cas.New[string](limit, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return casLimiter{l}
	}
	l, err := mutex.New[string](limit, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return mutexLimiter{l}
}
