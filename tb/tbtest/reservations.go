package tbtest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var reservations = []test{
	{"ReservationHasNoDelayIfTheBucketCanPay", reservationHasNoDelayIfTheBucketCanPay},
	{"ReservationsFollowTheSupplyExactly", reservationsFollowTheSupplyExactly},
	{"DebtIsAtMostOneCapacity", debtIsAtMostOneCapacity},
	{"ConcurrentReservationsShareNoSlot", concurrentReservationsShareNoSlot},
	{"LevelInDebtIsNegative", levelInDebtIsNegative},
	{"LateReservationQueuesBehindTheOthers", lateReservationQueuesBehindTheOthers},
	{"ReserveChecksItsCost", reserveChecksItsCost},
	{"ReserveUnderRefuseNewReturnsTheWait", reserveUnderRefuseNewReturnsTheWait},
	{"ChargeMayWait", chargeMayWait},
	{"ChargeChecksItsArguments", chargeChecksItsArguments},
	{"WaitingChargeInTakeAll", waitingChargeInTakeAll},
}

// reserve reserves tokens of key. It fails the test if no call may return the result.
func (f *fixture) reserve(key string, cost float64) tb.Reservation {
	f.Helper()
	r, err := skipUnless[hasReserve](f).Reserve(context.Background(), key, cost)
	f.check(r.Decision, err)
	if r.Delay() < 0 || !r.Allowed && r.Delay() != 0 {
		f.Fatalf("Reserve(%q, %v) = %+v with a delay of %v", key, cost, r.Decision, r.Delay())
	}
	return r
}

// reserved reserves tokens of key. It fails the test unless they may be used after delay.
func (f *fixture) reserved(key string, cost float64, delay time.Duration) tb.Reservation {
	f.Helper()
	r := f.reserve(key, cost)
	if !r.Allowed || r.Delay() != delay {
		f.Fatalf("limit %+v: Reserve(%q, %v) = %+v with a delay of %v, want a delay of %v",
			f.limit, key, cost, r.Decision, r.Delay(), delay)
	}
	return r
}

// notReserved fails the test unless Reserve is refused with the given RetryAfter.
func (f *fixture) notReserved(key string, cost float64, retry time.Duration) tb.Reservation {
	f.Helper()
	r := f.reserve(key, cost)
	if r.Allowed || r.RetryAfter != retry {
		f.Fatalf("limit %+v: Reserve(%q, %v) = %+v, want refused for %v",
			f.limit, key, cost, r.Decision, retry)
	}
	return r
}

func reservationHasNoDelayIfTheBucketCanPay(s *suite) {
	f := s.new(perSecond(10, 5))
	if r := f.reserved("a", 4.5, 0); r.Remaining != 5 {
		s.Errorf("Reserve = %+v, want 5 remaining", r.Decision)
	}
	f.granted("a", 5, 0)
	if r := f.reserved("a", 0.5, 0); r.Remaining != 0 {
		s.Errorf("Reserve = %+v, want 0 remaining", r.Decision)
	}
	f.refused("a", 1, time.Second/5, 0)
	f.Advance(time.Second)
	f.reserved("a", 5, 0)
	f.refused("a", 1, time.Second/5, 0)
}

// The bucket is empty at the first reading and never full again. So the call that makes the
// tokens taken since then n is granted, or may be used, when the rate has supplied n tokens.
func reservationsFollowTheSupplyExactly(s *suite) {
	for seed, limit := range limits {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		f := s.new(limit)
		f.reserved("a", float64(limit.Capacity), 0)
		taken := int64(0)
		token := max(1, int64(limit.Per)/limit.Tokens)
		for range 300 {
			now := time.Duration(f.ns.Load())
			n := 1 + rng.IntN(limit.Capacity)/(1+rng.IntN(10))
			wait := func(tokens int64) time.Duration {
				t := timeFor(limit, max(0, tokens))
				if t == tb.Never {
					return tb.Never
				}
				return max(0, t-now)
			}
			switch paid, debt := wait(taken+int64(n)), wait(taken+int64(n-limit.Capacity)); {
			case rng.IntN(3) == 0 && paid > 0: // nothing that would take tokens of a reservation
				if d := f.allowN("a", n); d.Allowed || d.RetryAfter != paid {
					f.Fatalf("limit %+v at %v: AllowN(%d) = %+v, want refused for %v",
						limit, now, n, d, paid)
				}
			case paid == tb.Never:
				f.notReserved("a", float64(n), tb.Never)
			case debt > 0:
				f.notReserved("a", float64(n), debt)
			default:
				f.reserved("a", float64(n), paid)
				taken += int64(n)
			}
			tokens := rng.Float64() * float64(min(limit.Capacity, 1+rng.IntN(20)))
			step := time.Duration(float64(token) * tokens)
			full := timeFor(limit, taken+int64(limit.Capacity))
			if now+step < full && step >= 0 && now+step > 0 {
				f.Advance(step)
			}
		}
	}
}

func debtIsAtMostOneCapacity(s *suite) {
	for _, limit := range limits {
		c := limit.Capacity
		f := s.new(limit)
		f.reserved("a", float64(c), 0)
		if timeFor(limit, c+1) == tb.Never {
			continue // beyond the clock
		}
		f.reserved("a", float64(c), timeFor(limit, c))
		one := timeFor(limit, 1)
		f.notReserved("a", 1, one)
		f.notReserved("a", float64(c), timeFor(limit, c))
		f.refused("a", 1, timeFor(limit, c+1), 0)
		if one > 1 {
			f.Set(one - 1)
			f.notReserved("a", 1, 1)
		}
		f.Set(one)
		f.reserved("a", 1, timeFor(limit, c+1)-one)
		f.notReserved("a", 1, timeFor(limit, 2)-one)
	}
}

// The clock stands still, so each reservation has its own multiple of the time of a token.
func concurrentReservationsShareNoSlot(s *suite) {
	const callers, each = 64, 16
	f := s.new(perSecond(callers*each, 7))
	l := skipUnless[hasReserve](f)
	f.granted("a", callers*each, 0)
	var delays [callers][]time.Duration
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range each {
				if r, err := l.Reserve(context.Background(), "a", 1); err == nil && r.Allowed {
					delays[i] = append(delays[i], r.Delay())
				}
			}
		})
	}
	wg.Wait()
	var all []time.Duration
	for i, d := range delays {
		if !slices.IsSorted(d) {
			s.Errorf("caller %d: delays %v, want each longer than the one before", i, d)
		}
		all = append(all, d...)
	}
	slices.Sort(all)
	if len(all) != callers*each {
		s.Fatalf("%d reservations, want %d", len(all), callers*each)
	}
	for i, d := range all {
		if want := timeFor(f.limit, i+1); d != want {
			s.Fatalf("delay %d is %v, want %v", i, d, want)
		}
	}
	f.notReserved("a", 1, timeFor(f.limit, 1))
}

func levelInDebtIsNegative(s *suite) {
	f := s.new(perSecond(10, 4))
	f.granted("a", 8, 2)
	f.reserved("a", 5, 750*time.Millisecond)
	f.levelIs("a", tb.Level{Tokens: -3, NextToken: time.Second, Full: 3250 * time.Millisecond})
	f.Advance(700 * time.Millisecond)
	f.levelIs("a", tb.Level{
		Tokens: -0.2, NextToken: 300 * time.Millisecond, Full: 2550 * time.Millisecond,
	})
	f.Advance(50 * time.Millisecond)
	f.levelIs("a", tb.Level{NextToken: 250 * time.Millisecond, Full: 2500 * time.Millisecond})
	if l, ok := f.Limiter.(hasPeek); ok {
		d, err := l.Peek(context.Background(), "a")
		if want := (tb.Decision{RetryAfter: 250 * time.Millisecond}); err != nil || d != want {
			s.Errorf("Peek = %+v, %v, want %+v", d, err, want)
		}
	}
}

// A late reading gets the slot behind the reservations that were made before, and its delay counts
// from that reading.
func lateReservationQueuesBehindTheOthers(s *suite) {
	f := s.new(perSecond(10, 1))
	f.granted("a", 10, 0)
	f.Set(5 * time.Second)
	f.reserved("a", 7, 2*time.Second)
	f.Set(3 * time.Second)
	f.reserved("a", 1, 5*time.Second)
	f.refused("a", 1, 6*time.Second, 0)
	f.notReserved("a", 10, 5*time.Second)
	f.Set(8 * time.Second)
	f.levelIs("a", tb.Level{NextToken: time.Second, Full: 10 * time.Second})
}

func reserveChecksItsCost(s *suite) {
	f := s.new(perSecond(10, 1))
	l := skipUnless[hasReserve](f)
	for _, cost := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		r, err := l.Reserve(context.Background(), "a", cost)
		if !errors.Is(err, tb.ErrInvalidCost) || r.Allowed {
			s.Errorf("Reserve(%v) = %+v, %v; want ErrInvalidCost", cost, r.Decision, err)
		}
		r.Cancel() // does nothing
		if err := r.Settle(1); err != nil {
			s.Errorf("Settle of no reservation: %v", err)
		}
	}
	for range 2 { // on a new key, and on a key that has taken tokens
		for _, cost := range []float64{10.000001, 11, 1e300, math.MaxFloat64} {
			f.notReserved("a", cost, tb.Never)
		}
		f.granted("a", 5, f.remaining("a")-5)
	}
	f.refused("a", 1, time.Second, 0)
}

func reserveUnderRefuseNewReturnsTheWait(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1), tb.WithOverflow(tb.RefuseNew))
	skipUnless[hasLen](f)
	f.granted("a", 3, 7)
	f.notReserved("b", 1, 3*time.Second)
	f.reserved("a", 10, 3*time.Second)
	f.notReserved("b", 1, 13*time.Second)
	f.Set(13 * time.Second)
	f.reserved("b", 10, 0)
}
