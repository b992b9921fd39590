package tbtest

import (
	"cmp"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/ideal"
	"github.com/seed-181794aa/ratelimit/tb"
)

var cancellations = []test{
	{"CancelOfTheLastLeavesNoTrace", cancelOfTheLastLeavesNoTrace},
	{"CancelsInReverseOrderLeaveNoTrace", cancelsInReverseOrderLeaveNoTrace},
	{"CancelAtOnceAlwaysLeavesNoTrace", cancelAtOnceAlwaysLeavesNoTrace},
	{"CancelInTheMiddleChangesNothing", cancelInTheMiddleChangesNothing},
	{"CancelTwiceIsOnce", cancelTwiceIsOnce},
	{"CancelAfterTheSlotLeavesNoTrace", cancelAfterTheSlotLeavesNoTrace},
	{"CancelAfterResetChangesNothing", cancelAfterResetChangesNothing},
	{"CancelOfARefusedReservationChangesNothing", cancelOfARefusedReservationChangesNothing},
	{"CancelMintsNothing", cancelMintsNothing},
	{"ReservationsAreCounted", reservationsAreCounted},
}

// sameAs fails the test unless both buckets of the key a have the same level and refuse the whole
// capacity for the same time. f has made the calls that should leave no trace.
func (f *fixture) sameAs(untouched *fixture) {
	f.Helper()
	if got, want := f.levelOf(), untouched.levelOf(); got.Cmp(want) != 0 {
		f.Fatalf("limit %+v: %s tokens, want %s", f.limit, got.FloatString(9), want.FloatString(9))
	}
	if _, ok := f.Limiter.(hasCharge); !ok {
		return
	}
	whole := float64(f.limit.Capacity)
	got, err := f.charge("a", whole).Peek(f.Now())
	f.check(got, err)
	if want, _ := untouched.charge("a", whole).Peek(untouched.Now()); got != want {
		f.Fatalf("limit %+v: %+v, want %+v", f.limit, got, want)
	}
}

// cancelOfTheLastLeavesNoTrace cancels a reservation of a bucket that holds tokens, is empty or is
// in debt, at once and a nanosecond before it may be used.
func cancelOfTheLastLeavesNoTrace(s *suite) {
	for _, limit := range limits {
		if limit.Capacity < 3 || timeFor(limit, 2*int64(limit.Capacity)) == tb.Never {
			continue
		}
		c := limit.Capacity
		for _, before := range []int{1, c - 1, c, c + 1} {
			for _, cost := range []int{1, c / 2, c} {
				f, untouched := s.new(limit), s.new(limit)
				for _, g := range []*fixture{f, untouched} {
					g.reserved("a", float64(min(c, before)), 0)
					if before > c {
						g.reserved("a", float64(before-c), timeFor(limit, before-c))
					}
				}
				f.sameAs(untouched)
				for range 3 {
					r := f.reserve("a", float64(cost))
					wait := max(0, r.Delay()-1)
					f.Advance(wait)
					r.Cancel()
					untouched.Advance(wait)
					f.sameAs(untouched)
				}
			}
		}
	}
}

func cancelsInReverseOrderLeaveNoTrace(s *suite) {
	f, untouched := s.new(perSecond(10, 3)), s.new(perSecond(10, 3))
	f.granted("a", 8, 2)
	untouched.granted("a", 8, 2)
	var rs []tb.Reservation
	for _, cost := range []float64{1.5, 4, 0.25, 5} {
		rs = append(rs, f.reserve("a", cost))
	}
	for _, r := range slices.Backward(rs) {
		r.Cancel()
	}
	f.sameAs(untouched)
	f.granted("a", 2, 0)
}

// cancelAtOnceAlwaysLeavesNoTrace takes tokens and gives them back at once, from a bucket that is
// used for so long that an implementation may have to move it.
func cancelAtOnceAlwaysLeavesNoTrace(s *suite) {
	for _, capacity := range []int{1, 83, tb.MaxCapacity} {
		limit := tb.Limit{Capacity: capacity, Tokens: 1, Per: 7}
		rng := rand.New(rand.NewPCG(uint64(capacity), 8))
		f, untouched := s.new(limit), s.new(limit)
		for range 1000 {
			cost := rng.Float64() * float64(capacity)
			r := f.reserve("a", cost)
			r.Cancel()
			f.sameAs(untouched)
			c := f.waiting("a", cost, tb.Never)
			f.take(c)
			c.Cancel()
			f.sameAs(untouched)
			f.reserve("a", cost)
			untouched.reserve("a", cost)
			step := time.Duration(rng.Float64() * float64(limit.Per) * float64(capacity))
			f.Advance(step)
			untouched.Advance(step)
		}
	}
}

func cancelInTheMiddleChangesNothing(s *suite) {
	f := s.new(perSecond(10, 1))
	f.granted("a", 10, 0)
	first := f.reserved("a", 5, 5*time.Second)
	middle := f.reserved("a", 2, 7*time.Second)
	last := f.reserved("a", 1, 8*time.Second)
	middle.Cancel()
	f.refused("a", 1, 9*time.Second, 0)
	first.Cancel()
	f.refused("a", 1, 9*time.Second, 0)
	last.Cancel()
	f.refused("a", 1, 8*time.Second, 0)
	middle.Cancel() // again
	f.reserved("a", 1, 8*time.Second)
}

func cancelTwiceIsOnce(s *suite) { s.twiceIsOnce(func(r tb.Reservation) { r.Cancel() }) }

func settleTwiceIsOnce(s *suite) {
	f := s.twiceIsOnce(func(r tb.Reservation) { _ = r.Settle(0) })
	f.settledAs(0, 0)
}

// twiceIsOnce ends reservations several times, concurrently. end gives all tokens back.
func (s *suite) twiceIsOnce(end func(tb.Reservation)) *fixture {
	f := s.new(perSecond(100, 1))
	f.granted("a", 50, 50)
	for range 20 {
		r := f.reserve("a", 7)
		again := r // a copy is the same reservation
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { end(again) })
		}
		wg.Wait()
		f.settle(r, 50)
		r.Cancel()
		f.levelIs("a", tb.Level{Tokens: 50, NextToken: time.Second, Full: 50 * time.Second})
	}
	return f
}

// cancelAfterTheSlotLeavesNoTrace cancels reservations and charges whose tokens could be used at
// once, or after a slot that has passed.
func cancelAfterTheSlotLeavesNoTrace(s *suite) {
	for _, before := range []float64{1, 10} {
		f, untouched := s.new(perSecond(10, 3)), s.new(perSecond(10, 3))
		for _, g := range []*fixture{f, untouched} {
			g.reserved("a", before, 0)
		}
		for range 2 {
			r := f.reserve("a", 5)
			past := r.Delay() + 1
			f.Advance(past)
			r.Cancel()
			untouched.Advance(past)
			f.sameAs(untouched)
			c := f.waiting("a", 5, tb.Never)
			f.take(c)
			f.Advance(past)
			c.Cancel()
			untouched.Advance(past)
			f.sameAs(untouched)
		}
	}
}

func cancelAfterResetChangesNothing(s *suite) {
	f := s.new(perSecond(10, 1))
	l := skipUnless[hasReset](f)
	early := f.reserved("a", 10, 0)
	late := f.reserved("a", 4, 4*time.Second)
	l.Reset("a")
	f.granted("a", 8, 2)
	late.Cancel()
	early.Cancel()
	f.refused("a", 3, time.Second, 2)
}

func cancelOfARefusedReservationChangesNothing(s *suite) {
	f := s.new(perSecond(10, 1))
	f.granted("a", 10, 0)
	f.reserved("a", 8, 8*time.Second)
	r := f.notReserved("a", 3, time.Second)
	r.Cancel()
	if err := r.Settle(1); err != nil {
		s.Errorf("Settle of a refused reservation: %v", err)
	}
	f.refused("a", 1, 9*time.Second, 0)
}

// cancelMintsNothing makes random calls. The bucket has at most what an ideal bucket without the
// cancelled reservations has, and at least what one has that cancels nothing. C1 holds for the
// reservations that are not cancelled, each counted at its slot.
func cancelMintsNothing(s *suite) {
	for seed, limit := range limits {
		if timeFor(limit, 3*int64(limit.Capacity)) == tb.Never {
			continue
		}
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		f := s.new(limit)
		var grants []grant
		var times []time.Time // of the calls
		rs := map[int]tb.Reservation{}
		token := float64(limit.Per) / float64(limit.Tokens)
		for i := range 250 {
			f.Advance(time.Duration(rng.Float64() * rng.Float64() * token * float64(min(limit.Capacity, 9))))
			now := time.Duration(f.ns.Load())
			n := 1 + rng.IntN(limit.Capacity)/(1+rng.IntN(5))
			switch rng.IntN(5) {
			case 0:
				if f.allowN("a", n).Allowed {
					grants = append(grants, grant{before: now, after: now, n: n})
					times = append(times, f.Now())
				}
			case 1, 2:
				if r := f.reserve("a", float64(n)); r.Allowed {
					rs[len(grants)] = r
					slot := now + r.Delay()
					grants = append(grants, grant{before: max(now, slot-1), after: slot, n: n})
					times = append(times, f.Now())
				}
			default:
				if k := len(grants) - 1 - rng.IntN(3); k >= 0 && rs[k].Allowed {
					rs[k].Cancel()
					grants[k].cancelled = true
				}
			}
			if i%10 == 0 {
				least := f.after(grants, times, false)
				most := f.after(grants, times, true)
				f.levelBetween(least, most, ideal.Quantum(limit))
			}
		}
		kept := slices.DeleteFunc(grants, func(g grant) bool { return g.cancelled })
		slices.SortStableFunc(kept, func(a, b grant) int { return cmp.Compare(a.after, b.after) })
		f.checkBound(kept)
	}
}

// after returns the tokens of an ideal bucket after the grants at the given times. It can leave out
// the cancelled ones.
func (f *fixture) after(grants []grant, times []time.Time, leaveOut bool) *big.Rat {
	b := ideal.New(f.limit)
	for i, g := range grants {
		if !g.cancelled || !leaveOut {
			b.Take(times[i], tokens(g.n))
		}
	}
	return b.Tokens(f.Now())
}

func reservationsAreCounted(s *suite) {
	f := s.new(perSecond(10, 1))
	l := skipUnless[hasStats](f)
	counted := func(reservations, cancellations uint64) {
		f.Helper()
		st := l.Stats()
		if st.Reservations != reservations || st.Cancellations != cancellations {
			f.Fatalf("%+v, want %d reservations and %d cancellations", st, reservations, cancellations)
		}
	}
	r := f.reserved("a", 10, 0)
	f.notReserved("a", 11, tb.Never)
	counted(1, 0)
	f.allow("a")
	other := f.reserved("a", 3, 3*time.Second)
	counted(2, 0)
	f.Set(2)
	r.Cancel() // gives nothing back, and counts
	r.Cancel()
	counted(2, 1)
	other.Cancel()
	counted(2, 2)
	c := f.waiting("a", 2, tb.Never)
	f.take(c)
	counted(3, 2)
	c.Cancel()
	c.Cancel()
	counted(3, 3)
	c.MayWait(0)
	f.Set(10 * time.Second)
	f.take(c)
	c.Cancel()
	counted(3, 3)
}
