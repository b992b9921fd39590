package tbtest

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/ideal"
	"github.com/seed-181794aa/ratelimit/tb"
)

var settlements = []test{
	{"SettleReplacesTheCost", settleReplacesTheCost},
	{"SettleChecksTheActualCost", settleChecksTheActualCost},
	{"SettleTwiceIsOnce", settleTwiceIsOnce},
	{"SettlePaysDebtFirst", settlePaysDebtFirst},
	{"CancelAfterSettleGivesBackItsCost", cancelAfterSettleGivesBackItsCost},
	{"SettleOfACharge", settleOfACharge},
	{"SettleAfterEviction", settleAfterEviction},
	{"SettledCostsFollowTheIdealBucket", settledCostsFollowTheIdealBucket},
}

// settle settles a reservation.
func (f *fixture) settle(r interface{ Settle(float64) error }, actual float64) {
	f.Helper()
	if err := r.Settle(actual); err != nil {
		f.Fatalf("Settle(%v): %v", actual, err)
	}
}

// settledAs fails the test unless Stats has the given sums, if the limiter has Stats.
func (f *fixture) settledAs(settled, unpaid float64) {
	f.Helper()
	l, ok := f.Limiter.(hasStats)
	if !ok {
		return
	}
	if st := l.Stats(); st.Settled != settled || st.Unpaid != unpaid {
		f.Fatalf("%+v, want %v settled and %v unpaid", st, settled, unpaid)
	}
}

func settleReplacesTheCost(s *suite) {
	for _, tt := range []struct {
		estimate float64
		after    time.Duration
		actual   float64
		left     float64 // in the bucket of capacity 10, at 2 tokens a second
		unpaid   float64
	}{
		{8, 0, 8, 2, 0},
		{8, 0, 3, 7, 0},
		{8, 0, 0, 10, 0},
		{8, 0, 0.75, 9.25, 0},
		{8, time.Second, 5, 7, 0},
		{8, 3 * time.Second, 5, 10, 0}, // 8 in the bucket, and 3 do not fit
		{8, time.Hour, 5, 10, 0},
		{8, 0, 8.5, 1.5, 0},
		{8, 0, 10, 0, 0},
		{8, 0, 13, -3, 0}, // above the capacity
		{8, time.Second, 15, -3, 0},
		{8, 0, 20, -10, 0},
		{8, 0, 20.5, -10, 0.5},
		{8, 0, 1000, -10, 980},
		{8, time.Second, 1000, -10, 978},
		{8, time.Hour, 1000, -10, 972},
		{0.25, 0, 4, 6, 0},
	} {
		f := s.new(perSecond(10, 2))
		r := f.reserved("a", tt.estimate, 0)
		f.Advance(tt.after)
		f.settle(r, tt.actual)
		if got := f.levelOf(); got.Cmp(new(big.Rat).SetFloat64(tt.left)) != 0 {
			s.Errorf("estimate %v, actual %v after %v: %s tokens, want %v",
				tt.estimate, tt.actual, tt.after, got.FloatString(9), tt.left)
		}
		f.settledAs(tt.actual, tt.unpaid)
		if tt.left < 0 {
			f.refused("a", 1, time.Duration((1-tt.left)*float64(time.Second)/2), 0)
		}
	}
}

func settleChecksTheActualCost(s *suite) {
	f := s.new(perSecond(10, 1))
	r := f.reserved("a", 4, 0)
	c := f.waiting("a", 2, tb.Never)
	f.take(c)
	refused := f.notReserved("a", 11, tb.Never)
	for _, actual := range []float64{-1, -1e-300, math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, r := range []tb.Reservation{r, refused, {}} {
			if err := r.Settle(actual); !errors.Is(err, tb.ErrInvalidCost) {
				s.Errorf("Settle(%v): %v, want ErrInvalidCost", actual, err)
			}
		}
		if err := c.Settle(actual); !errors.Is(err, tb.ErrInvalidCost) {
			s.Errorf("Settle(%v) of a charge: %v, want ErrInvalidCost", actual, err)
		}
	}
	f.settledAs(0, 0)
	f.settle(r, 1) // the reservation is still open
	f.settle(c, 1)
	f.granted("a", 8, 0)
	f.settledAs(2, 0)
	f.Advance(time.Hour)
	f.settle(f.reserved("a", 1, 0), math.MaxFloat64)
	f.notReserved("a", 1, time.Second)
}

// The tokens that come back shorten the queue for later calls. A reservation keeps its delay, and
// its Cancel gives back no more than its cost.
func settlePaysDebtFirst(s *suite) {
	f := s.new(perSecond(10, 1))
	first := f.reserved("a", 10, 0)
	second := f.reserved("a", 4, 4*time.Second)
	third := f.reserved("a", 3, 7*time.Second)
	f.settle(first, 8)
	f.levelIs("a", tb.Level{Tokens: -5, NextToken: 6 * time.Second, Full: 15 * time.Second})
	f.reserved("a", 1, 6*time.Second)
	f.settle(second, 0)
	f.levelIs("a", tb.Level{Tokens: -2, NextToken: 3 * time.Second, Full: 12 * time.Second})
	f.Advance(time.Second)
	f.settle(third, 0.5)
	f.levelIs("a", tb.Level{
		Tokens: 1.5, NextToken: 500 * time.Millisecond, Full: 8500 * time.Millisecond,
	})
	f.granted("a", 1, 0)
}

// The tokens that come back let the bucket grant a call before the slot of the second reservation.
// Its Cancel then gives back at most its cost, as a settlement with 0 would.
func cancelAfterSettleGivesBackItsCost(s *suite) {
	f, settled := s.new(perSecond(10, 1)), s.new(perSecond(10, 1))
	for _, g := range []*fixture{f, settled} {
		first := g.reserved("a", 10, 0)
		second := g.reserved("a", 6, 6*time.Second)
		g.settle(first, 2)
		g.Advance(time.Second)
		g.granted("a", 3, 0)
		if g == f {
			second.Cancel()
		} else {
			g.settle(second, 0)
		}
	}
	if got, most := f.levelOf(), settled.levelOf(); got.Cmp(most) > 0 {
		s.Errorf("%s tokens, want at most %s", got.FloatString(6), most.FloatString(6))
	}
}

func settleOfACharge(s *suite) {
	f := s.new(perSecond(10, 1))
	c := f.waiting("a", 6, 0)
	f.settle(c, 5) // before any Take
	f.take(c)
	f.settle(c, 2)
	f.settle(c, 9) // the cost is settled already
	c.Cancel()
	f.granted("a", 8, 0)
	c.MayWait(tb.Never)
	f.take(c)
	if c.Delay() != 6*time.Second {
		s.Errorf("delay %v, want 6s", c.Delay())
	}
	f.settle(c, 11)
	f.refused("a", 1, 11*time.Second, 0) // one capacity of debt
	f.settledAs(13, 1)
	c.MayWait(0)
	f.takes(c, refused(16*time.Second, 0))
	f.settle(c, 1) // the last Take was refused
	f.settledAs(13, 1)
}

// A bucket that was evicted gets nothing back. What is missing is charged to the new bucket.
func settleAfterEviction(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1))
	skipUnless[hasLen](f)
	less, more := f.reserved("a", 3, 0), f.reserved("a", 3, 0)
	f.granted("b", 1, 9)
	f.settle(less, 0)
	f.granted("b", 1, 8)
	f.settle(more, 15)
	f.hasKeys(1)
	f.refused("a", 1, 3*time.Second, 0)
	f.settledAs(15, 0)
}

// settledCostsFollowTheIdealBucket settles in random order, and compares with an ideal bucket that
// gets back what was too much and is charged for what was too little, down to one capacity of
// debt. The bound of settled costs follows from that: DESIGN.md §9.
func settledCostsFollowTheIdealBucket(s *suite) {
	for seed, limit := range limits {
		if timeFor(limit, 3*int64(limit.Capacity)) == tb.Never {
			continue
		}
		rng := rand.New(rand.NewPCG(uint64(seed), 4))
		f := s.new(limit)
		b := ideal.New(limit)
		slack := multiple(2, ideal.Quantum(limit))
		unpaid := new(big.Rat)
		type estimate struct {
			tb.Reservation
			n int
		}
		var open []estimate
		token := float64(limit.Per) / float64(limit.Tokens)
		for range 250 {
			f.Advance(time.Duration(rng.Float64() * token * float64(min(limit.Capacity, 9))))
			if n := 1 + rng.IntN(limit.Capacity); rng.IntN(2) == 0 {
				if r := f.reserve("a", float64(n)); r.Allowed {
					open = append(open, estimate{r, n})
					b.Take(f.Now(), tokens(n))
				}
			} else if len(open) > 0 {
				i := rng.IntN(len(open))
				n := int64(open[i].n)
				actual := rng.Int64N(2*n + 1)
				f.settle(open[i], float64(actual))
				if actual > n {
					unpaid.Add(unpaid, b.Settle(f.Now(), big.NewRat(actual-n, 1)))
				} else {
					b.Give(f.Now(), big.NewRat(n-actual, 1))
				}
				open = slices.Delete(open, i, i+1)
			}
			f.levelBetween(b.Tokens(f.Now()), b.Tokens(f.Now()), slack)
		}
		if l, ok := f.Limiter.(hasStats); ok {
			got := new(big.Rat).SetFloat64(l.Stats().Unpaid)
			slack.Mul(slack, big.NewRat(250, 1))
			if got.Sub(got, unpaid).Abs(got).Cmp(slack) > 0 {
				f.Errorf("limit %+v: %+v, want %s unpaid", limit, l.Stats(), unpaid.FloatString(6))
			}
		}
	}
}
