package fuzz

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// TestTiersAgree makes random calls on limiters with tiers, whose keys change their tiers and whose
// tiers change their limits. One program in twenty changes them so often that eras are forgotten,
// without late readings (see changing), and has keys in the deepest debt.
func TestTiersAgree(t *testing.T) {
	n, granted, refused := *programs/3, 0, 0
	eachProgram(t, n, func(source *rand.ChaCha8) {
		rng := rand.New(source)
		calls, change, late := 60, 12, 10
		if rng.IntN(20) == 0 {
			calls, change, late = 500, 2, 0
		}
		var now time.Time
		tiers := map[string]int{}
		limits := make([]tb.Limit, 1+rng.IntN(4))
		for i := range limits {
			limits[i] = randomLimit(rng)
		}
		clock := tb.WithClock(func() time.Time { return now })
		c, err := cas.NewTiered[string](limits, clock)
		if err != nil {
			t.Fatal(err)
		}
		m, err := mutex.NewTiered[string](limits, clock)
		if err != nil {
			t.Fatal(err)
		}
		var log []string
		type pair struct {
			ofCAS, ofMutex tb.Reservation
			key            string
		}
		var held []pair
		for range calls {
			now = now.Add(time.Duration(rng.ExpFloat64() * float64(time.Second)))
			if late > 0 && rng.IntN(late) == 0 {
				now = now.Add(-time.Second)
			}
			key := string(rune('a' + rng.IntN(3)))
			switch rng.IntN(change) {
			case 0:
				tiers[key] = rng.IntN(len(limits))
				log = append(log, fmt.Sprint(now, key, " to tier ", tiers[key]))
				continue
			case 1:
				i, limit := rng.IntN(len(limits)), randomLimit(rng)
				if err := cmp.Or(c.SetTier(i, limit), m.SetTier(i, limit)); err != nil {
					t.Fatal(err)
				}
				log = append(log, fmt.Sprint(now, " tier ", i, " is ", limit))
				continue
			}
			if rng.IntN(12) == 0 {
				until := now.Add(time.Duration(rng.ExpFloat64() * float64(10*time.Second)))
				if err := cmp.Or(c.Hold(t.Context(), key, until), m.Hold(t.Context(), key, until)); err != nil {
					t.Fatal(err)
				}
				log = append(log, fmt.Sprint(now, " ", key, " is held to ", until))
			}
			n := 1 + rng.IntN(limits[tiers[key]].Capacity)
			var got, want tb.Decision
			switch rng.IntN(6) {
			default: // the key enters the tier
				ofCAS, _ := c.ChargeIn(tiers[key], key, float64(n))
				ofMutex, _ := m.ChargeIn(tiers[key], key, float64(n))
				before := [2]any{first(ofCAS.Level(now)), first(ofCAS.Peek(now))}
				if other := [2]any{first(ofMutex.Level(now)), first(ofMutex.Peek(now))}; before != other {
					t.Fatalf("limits %v:\n%q\ncas   %+v\nmutex %+v", limits, log, before, other)
				}
				if rng.IntN(8) == 0 {
					tokens := float64(rng.IntN(2 * n))
					ofCAS.Keep(tokens)
					ofMutex.Keep(tokens)
				}
				if rng.IntN(8) == 0 {
					d := time.Duration(rng.ExpFloat64() * float64(10*time.Second))
					ofCAS.HoldOnRefusal(d)
					ofMutex.HoldOnRefusal(d)
				}
				switch rng.IntN(4) {
				case 0: // as a TakeAll that refuses
					ofCAS.Enter(now)
					ofMutex.Enter(now)
				case 1:
					got, want = first(ofCAS.Take(now)), first(ofMutex.Take(now))
					actual := rng.Float64() * float64(n)
					_, _ = ofCAS.Settle(actual), ofMutex.Settle(actual)
				default:
					got, want = first(ofCAS.Take(now)), first(ofMutex.Take(now))
				}
			case 0: // a call in the tier that it is in
				if p, q := first(c.Peek(t.Context(), key)), first(m.Peek(t.Context(), key)); p != q {
					t.Fatalf("limits %v:\n%q\nPeek: cas %+v, mutex %+v", limits, log, p, q)
				}
				switch rng.IntN(3) {
				case 0:
					got, want = first(c.Allow(t.Context(), key)), first(m.Allow(t.Context(), key))
				case 1:
					got = first(c.AllowN(t.Context(), key, float64(n)))
					want = first(m.AllowN(t.Context(), key, float64(n)))
				default:
					got = first(c.AllowAt(now, key, float64(n)))
					want = first(m.AllowAt(now, key, float64(n)))
				}
			case 1: // a reservation there
				r, _ := c.Reserve(t.Context(), key, float64(n))
				s, _ := m.Reserve(t.Context(), key, float64(n))
				held = append(held, pair{r, s, key})
				got, want = r.Decision, s.Decision
				got.RetryAfter += r.Delay()
				want.RetryAfter += s.Delay()
			case 2:
				if late == 0 && rng.IntN(8) == 0 {
					got, _ = goDeep(casLimiter{c}, key, n, now)
					want, _ = goDeep(mutexLimiter{m}, key, n, now)
				} else if len(held) > 0 {
					both := held[len(held)-1-rng.IntN(len(held))]
					if actual := float64(rng.IntN(2 * n)); rng.IntN(2) == 0 {
						_, _ = both.ofCAS.Settle(actual), both.ofMutex.Settle(actual)
					} else {
						both.ofCAS.Cancel()
						both.ofMutex.Cancel()
						level := first(c.Level(t.Context(), both.key))
						if level.Tokens < first(m.Level(t.Context(), both.key)).Tokens {
							return // the bucket has moved since, so it got nothing back
						}
					}
				}
			}
			log = append(log, fmt.Sprint(now, " ", key, " takes ", n, ": ", got))
			if got != want {
				t.Fatalf("limits %v:\n%q\ncas   %+v\nmutex %+v", limits, log, got, want)
			}
			gotLevel, _ := c.Level(t.Context(), key)
			if wantLevel, _ := m.Level(t.Context(), key); gotLevel != wantLevel {
				t.Fatalf("limits %v:\n%q\ncas   %+v\nmutex %+v", limits, log, gotLevel, wantLevel)
			}
			if got.Allowed {
				granted++
			} else {
				refused++
			}
		}
	})
	tally(t, n, granted+refused, 0)
	if min(granted, refused) < *programs/2 {
		t.Errorf("%d granted, %d refused: too few of one answer", granted, refused)
	}
}

func first[T any](v T, _ error) T { return v }

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
