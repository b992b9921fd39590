package tbtest

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// call is a call whose cost is known afterwards. It is in flight from its grant until what Settle
// charged is paid.
type call struct {
	granted, paid    time.Duration
	estimate, actual int
}

// boundOfSettledCosts has 64 callers of a language model, whose estimates are wrong by up to half.
// In any interval the actual tokens are at most the bound of C1, and what the estimates in flight
// at its start were too high, and what the estimates in flight at its end were too low, and the
// unpaid tokens.
func boundOfSettledCosts(s *suite) {
	limit := tb.Limit{Capacity: 10_000, Tokens: 60_000, Per: time.Minute}
	skipUnless[hasStats](s.new(limit))
	for _, most := range []int{2_000, 9_000} { // tokens of an estimate
		// Callers that wake at the same time come in any order. In a few orders the estimates do not
		// matter, and another crowd is needed.
		above := 0.0
		for seed := uint64(0); above == 0 && !s.Failed(); seed++ {
			if seed == 50 {
				s.Fatal("no interval is above C1, so the test shows nothing of the estimates")
			}
			s.inBubble(limit, func(b *bubble) { above = b.crowd(most, seed) })
		}
	}
}

// crowd makes the calls, whose estimates have at most the given tokens. It returns by how much the
// actual tokens of an interval were above the bound of C1.
func (b *bubble) crowd(most int, seed uint64) (above float64) {
	const callers, each = 64, 24
	var mu sync.Mutex
	var calls []call
	var refused atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i)+seed<<32, uint64(most)))
			for n := 0; n < each; {
				estimate := 1 + rng.IntN(most)
				r := b.reserve("a", float64(estimate))
				if !r.Allowed || r.Delay() > 0 { // this caller never waits in the queue
					r.Cancel()
					if refused.Add(1) > 200_000 {
						b.Error("the callers do not get on: cancelled tokens are lost")
						return
					}
					time.Sleep(r.RetryAfter + r.Delay() + time.Duration(rng.IntN(1e9)))
					continue
				}
				n++
				c := call{granted: b.elapsed(), estimate: estimate}
				time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Second))))
				c.actual = rng.IntN(2*estimate + 1)
				b.settle(r, float64(c.actual))
				c.paid = b.elapsed() + b.untilPaid()
				mu.Lock()
				calls = append(calls, c)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if refused.Load() == 0 {
		b.Error("no call was refused, so the test shows nothing")
	}
	return b.checkCalls(calls)
}

// untilPaid returns the time until the bucket of the key a is out of debt.
func (b *bubble) untilPaid() time.Duration {
	debt, _ := b.levelOf().Float64()
	return time.Duration(math.Ceil(max(0, -debt) * float64(b.limit.Per) / float64(b.limit.Tokens)))
}

// checkCalls checks the bound, and returns by how much an interval was above C1.
func (b *bubble) checkCalls(calls []call) (above float64) {
	b.Helper()
	unpaid := b.Limiter.(hasStats).Stats().Unpaid
	slices.SortFunc(calls, func(x, y call) int { return cmp.Compare(x.granted, y.granted) })
	tooLow := make([]int, len(calls)) // in flight just after each grant
	for i, last := range calls {
		for _, c := range calls[:i+1] {
			if c.paid > last.granted {
				tooLow[i] += max(0, c.actual-c.estimate)
			}
		}
	}
	start, _ := bound(b.limit, 0).Float64()
	rate := float64(b.limit.Tokens) / float64(b.limit.Per)
	for i, first := range calls {
		tooHigh, actual := 0, 0
		for _, c := range calls[:i] { // in flight just before the grant
			if c.paid >= first.granted {
				tooHigh += max(0, c.estimate-c.actual)
			}
		}
		for j, last := range calls[i:] {
			actual += last.actual
			most := start + rate*float64(last.granted-first.granted)
			above = max(above, float64(actual)-most)
			if most += float64(tooHigh+tooLow[i+j]) + unpaid; float64(actual) > most+1e-6 {
				b.Fatalf("%d tokens in %v, want at most %v (too high %d, too low %d, unpaid %v)",
					actual, last.granted-first.granted, most, tooHigh, tooLow[i+j], unpaid)
			}
		}
	}
	return above
}
