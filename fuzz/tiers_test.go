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
	n, granted, refused, deep := *programs/3, 0, 0, 0
	eachProgram(t, n, func(source *rand.ChaCha8) {
		rng := rand.New(source)
		calls, change, late := 60, 12, 10
		if rng.IntN(20) == 0 {
			calls, change, late = 500, 3, 0
		}
		var now time.Time
		tiers := map[string]int{}
		limits := make([]tb.Limit, 1+rng.IntN(4))
		for i := range limits {
			limits[i] = randomLimit(rng)
		}
		clock := tb.WithClock(func() time.Time { return now })
		c, err := cas.NewTiered[string](limits, clock)
		m, other := mutex.NewTiered[string](limits, clock)
		if err := cmp.Or(err, other); err != nil {
			t.Fatal(err)
		}
		limiters := [2]limiter{casLimiter{c}, mutexLimiter{m}}
		var reservations [2][]held
		var log []string
		for range calls {
			now = now.Add(time.Duration(rng.ExpFloat64() * float64(time.Second)))
			if late > 0 && rng.IntN(late) == 0 {
				now = now.Add(-time.Second)
			}
			key := string(rune('a' + rng.IntN(3)))
			n := 1 + rng.IntN(limits[tiers[key]].Capacity)
			some := time.Duration(rng.ExpFloat64() * float64(10*time.Second))
			actual, back := float64(rng.IntN(2*n)), rng.IntN(1+len(reservations[0]))
			how, cancels := rng.IntN(4), rng.IntN(2) == 0
			what := fmt.Sprint("takes ", n)
			var call func(l limiter, i int, a *answer)
			switch op := rng.IntN(change); {
			case op == 0:
				tiers[key] = rng.IntN(len(limits))
				log = append(log, fmt.Sprint(now, key, " to tier ", tiers[key]))
				continue
			case op == 1:
				tier, limit := rng.IntN(len(limits)), randomLimit(rng)
				what = fmt.Sprint("in tier ", tier, ": ", limit)
				call = func(l limiter, _ int, a *answer) { a.err = fmt.Sprint(l.SetTier(tier, limit)) }
			case rng.IntN(12) == 0:
				what = fmt.Sprint("is held for ", some)
				call = func(l limiter, _ int, a *answer) {
					a.err = fmt.Sprint(l.Hold(t.Context(), key, now.Add(some)))
				}
			case rng.IntN(6) == 0: // a call in the tier that the key is in
				call = func(l limiter, _ int, a *answer) {
					a.other = first(l.Peek(t.Context(), key))
					switch how {
					case 0:
						a.decision = first(l.Allow(t.Context(), key))
					case 1:
						a.decision = first(l.AllowN(t.Context(), key, float64(n)))
					default:
						a.decision = first(l.AllowAt(now, key, float64(n)))
					}
				}
			case rng.IntN(5) == 0: // a reservation there
				call = func(l limiter, i int, a *answer) {
					r, _ := l.Reserve(t.Context(), key, float64(n))
					reservations[i] = append(reservations[i], held{r, key})
					a.decision, a.delays[0] = r.Decision, r.Delay()
				}
			case late == 0 && rng.IntN(32) == 0:
				deep++
				call = func(l limiter, _ int, a *answer) {
					a.decision, a.delays[0] = goDeep(l, key, n, now)
				}
			case back > 0 && rng.IntN(4) == 0:
				what = fmt.Sprint("ends a reservation: ", back, " ", cancels, " ", actual)
				call = func(l limiter, i int, a *answer) {
					r := reservations[i][len(reservations[i])-back]
					if cancels {
						r.Cancel()
					} else {
						a.err = fmt.Sprint(r.Settle(actual))
					}
					a.own = first(l.Level(t.Context(), r.key))
				}
			default: // the key enters the tier
				keep, hold := rng.IntN(8) == 0, rng.IntN(8) == 0
				call = func(l limiter, _ int, a *answer) {
					c, _ := l.ChargeIn(tiers[key], key, float64(n))
					a.late, a.other = first(c.Level(now)), first(c.Peek(now))
					if keep {
						c.Keep(actual)
					}
					if hold {
						c.HoldOnRefusal(some)
					}
					if how == 0 { // as a TakeAll that refuses
						c.Enter(now)
						return
					}
					if a.decision = first(c.Take(now)); how == 1 {
						a.err = fmt.Sprint(c.Settle(actual))
					}
				}
			}
			log = append(log, fmt.Sprint(now, " ", key, " ", what))
			var got [2]answer
			for i, l := range limiters {
				call(l, i, &got[i])
				got[i].level = first(l.Level(t.Context(), key))
			}
			if got[0].own.Tokens < got[1].own.Tokens && cancels {
				return // the bucket has moved since, so Cancel gave nothing back
			}
			if got[0] != got[1] {
				t.Fatalf("limits %v:\n%q\ncas   %+v\nmutex %+v", limits, log, got[0], got[1])
			}
			if got[0].decision.Allowed {
				granted++
			} else {
				refused++
			}
		}
	})
	tally(t, n, granted+refused, 0)
	t.Logf("%d granted, %d refused, %d times in the deepest debt", granted, refused, deep)
	if min(granted, refused) < *programs/2 || deep < *programs/100 {
		t.Error("too few of one kind")
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
