package fuzz

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// TestTiersAgree makes random calls on limiters with tiers, whose keys change their tiers and whose
// tiers change their limits.
func TestTiersAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	granted, refused := 0, 0
	for program := range 3000 {
		var now time.Time
		tiers := map[string]int{}
		tierOf := func(key string) int { return tiers[key] }
		limits := make([]tb.Limit, 1+rng.IntN(4))
		for i := range limits {
			limits[i] = randomLimit(rng)
		}
		clock := tb.WithClock(func() time.Time { return now })
		c, err := cas.NewTiered(limits, tierOf, clock)
		if err != nil {
			continue // a rate that is too high for a tier
		}
		m, err := mutex.NewTiered(limits, tierOf, clock)
		if err != nil {
			t.Fatal(err)
		}
		var log []string
		var held [][2]tb.Reservation
		for range 60 {
			now = now.Add(time.Duration(rng.ExpFloat64() * float64(time.Second)))
			if rng.IntN(10) == 0 {
				now = now.Add(-time.Second)
			}
			key := string(rune('a' + rng.IntN(3)))
			switch rng.IntN(12) {
			case 0:
				tiers[key] = rng.IntN(len(limits))
				log = append(log, fmt.Sprint(now, key, " to tier ", tiers[key]))
				continue
			case 1:
				i, limit := rng.IntN(len(limits)), randomLimit(rng)
				if c.SetTier(i, limit) == nil {
					_ = m.SetTier(i, limit)
				}
				log = append(log, fmt.Sprint(now, " tier ", i, " is ", limit))
				continue
			}
			n := 1 + rng.IntN(limits[tiers[key]].Capacity)
			var got, want tb.Decision
			switch rng.IntN(6) {
			default:
				got, _ = c.AllowN(t.Context(), key, n)
				want, _ = m.AllowN(t.Context(), key, n)
			case 0, 1:
				r, _ := c.Reserve(t.Context(), key, float64(n))
				s, _ := m.Reserve(t.Context(), key, float64(n))
				held = append(held, [2]tb.Reservation{r, s})
				got, want = r.Decision, s.Decision
				got.RetryAfter += r.Delay()
				want.RetryAfter += s.Delay()
			case 2:
				if len(held) > 0 {
					both := held[len(held)-1-rng.IntN(len(held))]
					if actual := float64(rng.IntN(2 * n)); rng.IntN(2) == 0 {
						_, _ = both[0].Settle(actual), both[1].Settle(actual)
					} else {
						both[0].Cancel()
						both[1].Cancel()
					}
				}
			}
			log = append(log, fmt.Sprint(now, " ", key, " takes ", n, ": ", got))
			if got != want {
				t.Fatalf("program %d, limits %v:\n%q\ncas   %+v\nmutex %+v", program, limits, log, got, want)
			}
			gotLevel, _ := c.Level(t.Context(), key)
			if wantLevel, _ := m.Level(t.Context(), key); gotLevel != wantLevel {
				t.Fatalf("program %d, limits %v:\n%q\ncas   %+v\nmutex %+v",
					program, limits, log, gotLevel, wantLevel)
			}
			if got.Allowed {
				granted++
			} else {
				refused++
			}
		}
	}
	if t.Logf("%d granted, %d refused", granted, refused); min(granted, refused) < 10_000 {
		t.Error("too few of one answer")
	}
}

func randomLimit(rng *rand.Rand) tb.Limit {
	capacity := 1 + rng.IntN(10)
	for range rng.IntN(5) {
		capacity *= 1 + rng.IntN(10)
	}
	return tb.Limit{
		Capacity: capacity, Tokens: 1 + rng.Int64N(int64(capacity)),
		Per: time.Duration(1+rng.IntN(10_000)) * time.Millisecond,
	}
}
