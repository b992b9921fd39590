package tbtest

import (
	"context"
	"math/big"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/ideal"
	"github.com/seed-181794aa/ratelimit/tb"
)

// The change reads the clock. A call with an earlier reading is decided at the time of the change,
// and its RetryAfter counts from its own reading.
func setLimitAndLateReadings(s *suite) {
	f := s.new(perSecond(10, 1))
	f.granted("a", 10, 0)
	f.Set(4 * time.Second)
	f.setLimit(perSecond(10, 10))
	f.Set(2 * time.Second)
	f.refused("a", 5, 2100*time.Millisecond, 4)
	f.granted("a", 4, 0)
	f.setLimit(perSecond(20, 10)) // its reading is earlier than the last change
	f.refused("a", 1, 2100*time.Millisecond, 0)
	f.Set(5 * time.Second)
	f.granted("a", 10, 0)
}

// setLimitKeepsTheTimeOfABucket changes limits while a bucket is ahead of the clock. The bucket is
// refilled from its own time on, by the limit of then, whatever the rates are.
func setLimitKeepsTheTimeOfABucket(s *suite) {
	const ahead = 10 * time.Millisecond
	rates := []tb.Limit{
		perSecond(10, 1), perSecond(10, 1_000_000), {Capacity: 10, Tokens: 1, Per: time.Hour},
		perSecond(11, 1), perSecond(1<<24, 1_000_000_000), {Capacity: 10, Tokens: 1, Per: 1},
	}
	for _, from := range rates {
		for _, between := range rates {
			for _, to := range rates {
				f := s.new(from)
				f.grantedAt(f.Now().Add(ahead), "a", from.Capacity-5)
				f.setLimit(between)
				f.Advance(ahead / 2)
				f.setLimit(to)
				f.Advance(ahead/2 - 1)
				if f.granted("a", 1, 4); f.levelOf().Cmp(big.NewRat(4, 1)) != 0 {
					f.Fatalf("%s tokens before the time of the bucket, want 4", f.levelOf().FloatString(9))
				}
				// The time of the bucket is known as exactly as the first limit supplies units.
				f.Advance(1 + 10*time.Millisecond)
				want := multiple(int64(10*time.Millisecond), ideal.Rate(to))
				want.Add(want, tokens(4))
				if most := big.NewRat(int64(to.Capacity), 1); want.Cmp(most) > 0 {
					want = most
				}
				least := new(big.Rat).Sub(want, lateBy(from, to))
				coarser := tb.Limit{Capacity: max(from.Capacity, to.Capacity)}
				f.levelBetween(least, want, ideal.Quantum(coarser))
			}
		}
	}
}

// The limit changes 250 years after the first reading, while a bucket is ahead of the clock. The
// bucket gets nothing until its own time.
func setLimitInTheLastYearsOfTheClock(s *suite) {
	const ahead = 10 * time.Second
	f := s.new(perSecond(10, 1))
	f.granted("a", 10, 0) // the first reading
	f.Set(250 * year)
	f.grantedAt(f.Now().Add(ahead), "a", 10)
	f.setLimit(perSecond(20, 1))
	f.refused("a", 1, ahead+time.Second, 0)
	f.Advance(ahead)
	f.refused("a", 1, time.Second, 0)
}

// lateBy returns the tokens that a limit supplies in the time in which the limit before supplies a
// quantum, and in a nanosecond.
func lateBy(before, l tb.Limit) *big.Rat {
	r := new(big.Rat).Quo(ideal.Quantum(before), ideal.Rate(before))
	r.Add(r, big.NewRat(2, 1))
	return r.Mul(r, ideal.Rate(l)).Add(r, ideal.Quantum(l))
}

// concurrentSetLimitStretchesNoTime lets grants overtake a SetLimit that makes the rate 3.6·10¹²
// times as slow. A grant between its reading and its end brings a later time to the bucket, but the
// next token comes within its period.
func concurrentSetLimitStretchesNoTime(s *suite) {
	fast := perSecond(100_000, 1_000_000_000)
	slow := tb.Limit{Capacity: 100_000, Tokens: 1, Per: time.Hour}
	for range 20 {
		f := s.new(fast)
		l := skipUnless[hasSetLimit](f)
		level := skipUnless[hasLevel](f)
		var stop atomic.Bool
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for !stop.Load() {
					f.Advance(1)
					_, _ = f.Allow(context.Background(), "a")
				}
			})
		}
		runtime.Gosched()
		err := l.SetLimit(slow)
		stop.Store(true)
		wg.Wait()
		now, _ := level.Level(context.Background(), "a")
		if err != nil || now.NextToken > time.Hour {
			f.Fatalf("error %v, %+v: the next token comes later than in an hour", err, now)
		}
	}
}

// The last reservation can be cancelled after the change. The delay of a reservation stays what it
// was.
func setLimitKeepsReservations(s *suite) {
	for _, to := range []tb.Limit{
		perSecond(10, 5), perSecond(20, 1), perSecond(8, 2), perSecond(10_000_000, 1),
	} {
		f, untouched := s.new(perSecond(10, 1)), s.new(perSecond(10, 1))
		var last tb.Reservation
		for _, g := range []*fixture{untouched, f} {
			g.granted("a", 10, 0)
			g.reserved("a", 3, 3*time.Second)
			if g == f {
				last = g.reserved("a", 4, 7*time.Second)
			}
			g.Advance(time.Second)
			g.setLimit(to)
			if last.Cancel(); last.Delay() != 0 && last.Delay() != 7*time.Second {
				f.Fatalf("delay %v, want 7s", last.Delay())
			}
		}
		f.sameAs(untouched)
		f.Advance(time.Second)
		untouched.Advance(time.Second)
		f.sameAs(untouched)
	}
}

func settleAfterSetLimit(s *suite) {
	for _, to := range []tb.Limit{
		perSecond(10, 5), perSecond(20, 1), perSecond(10_000_000, 1), perSecond(8, 2),
	} {
		for _, touched := range []bool{false, true} {
			f := s.new(perSecond(10, 1))
			f.granted("a", 3, 7)
			less, more := f.reserved("a", 4, 0), f.reserved("a", 3, 0)
			f.setLimit(to)
			if touched {
				f.reserved("a", 1, timeFor(to, 1))
			} else {
				f.reserved("a", 1, timeFor(to, 1)).Cancel()
			}
			left := f.levelOf()
			f.settle(less, 2)
			f.settle(more, 4)
			if got := f.levelOf().Sub(f.levelOf(), left); got.Cmp(big.NewRat(1, 1)) != 0 {
				f.Errorf("to %+v: %s tokens more, want 1", to, got.FloatString(9))
			}
			f.settledAs(6, 0)
		}
	}
}

// The limit changes between a grant and its Cancel. The bucket gets the tokens back, unless a call
// has moved it to the new limit in between.
func cancelAfterSetLimit(s *suite) {
	for moved, left := range map[bool]int{false: 10, true: 5} {
		f := s.new(perSecond(10, 1))
		c := f.charge("a", 4)
		f.take(c)
		f.setLimit(perSecond(20, 1))
		if moved {
			f.granted("a", 1, 5)
		}
		c.Cancel()
		f.granted("a", left, 0)
	}
}

// The limit changes while the bucket is in debt. A reservation after the change can be cancelled,
// although a settlement has paid the debt since.
func cancelAfterSetLimitAndSettle(s *suite) {
	f := s.new(perSecond(10, 1))
	estimate := f.reserved("a", 10, 0)
	f.reserved("a", 5, 5*time.Second)
	f.setLimit(perSecond(20, 1))
	last := f.reserved("a", 3, 8*time.Second)
	f.settle(estimate, 0)
	f.refused("a", 3, time.Second, 2)
	last.Cancel()
	f.refused("a", 6, time.Second, 5)
	f.granted("a", 5, 0)
}

// concurrentSetLimitKeepsTheBound has two calls of SetLimit at once, while callers take tokens with
// late readings.
// The tokens granted are at most the greater capacity and the supply of the greater rate.
func concurrentSetLimitKeepsTheBound(s *suite) {
	most := perSecond(100, 1_000_000)
	skipUnless[hasSetLimit](s.new(most))
	for _, other := range []tb.Limit{perSecond(100, 10), perSecond(20, 1_000_000), perSecond(1, 1)} {
		s.lateCalls(most, func(l tb.Limiter, over func() bool) {
			// Where a call waits for a server, changes without end would keep its reply waiting.
			for i := 0; i < 10 || i < 500 && !over(); i++ {
				l := l.(hasSetLimit)
				if l.SetLimit(other) != nil || l.SetLimit(most) != nil {
					s.Error("SetLimit returned an error")
				}
			}
		})
	}
}

// The clock stands still while callers take tokens and the limit changes, so the tokens of the
// bucket are granted once, and all of them.
func concurrentSetLimitLosesNoToken(s *suite) {
	const callers, each = 8, 2_000
	f := s.new(tb.Limit{Capacity: callers*each + 1, Tokens: 1, Per: time.Hour})
	set := skipUnless[hasSetLimit](f)
	f.granted("a", 1, callers*each)
	var done atomic.Int32
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			defer done.Add(1)
			for range each {
				if d, err := f.Allow(context.Background(), "a"); err != nil || !d.Allowed {
					s.Errorf("Allow = %+v, %v, want granted", d, err)
					return
				}
			}
		})
	}
	wg.Go(func() {
		for i := 0; done.Load() < callers; i++ {
			limit := tb.Limit{Capacity: callers*each + 1 + i%3, Tokens: 1 + int64(i%2), Per: time.Hour}
			if err := set.SetLimit(limit); err != nil {
				s.Errorf("SetLimit: %v", err)
			}
			runtime.Gosched()
		}
	})
	wg.Wait()
	f.limit = set.Limit()
	if d := f.allow("a"); d.Allowed {
		f.Errorf("%+v after all tokens were granted, want refused", d)
	}
}
