package tbtest

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/ideal"
	"github.com/seed-181794aa/ratelimit/tb"
)

var changes = []test{
	{"SetLimitKeepsTokens", setLimitKeepsTokens},
	{"SetLimitKeepsDebt", setLimitKeepsDebt},
	{"SetLimitGivesIdleBucketsNothing", setLimitGivesIdleBucketsNothing},
	{"ManyChangesGiveIdleBucketsNothing", manyChangesGiveIdleBucketsNothing},
	{"SetLimitIsForAllKeys", setLimitIsForAllKeys},
	{"ManyChangesOfTheRateLoseNothing", manyChangesOfTheRateLoseNothing},
	{"ChangesFollowTheIdealBucket", changesFollowTheIdealBucket},
	{"SetLimitChecksTheLimit", setLimitChecksTheLimit},
	{"SetLimitAndLateReadings", setLimitAndLateReadings},
	{"SetLimitKeepsTheTimeOfABucket", setLimitKeepsTheTimeOfABucket},
	{"SetLimitInTheLastYearsOfTheClock", setLimitInTheLastYearsOfTheClock},
	{"ConcurrentSetLimitStretchesNoTime", concurrentSetLimitStretchesNoTime},
	{"SetLimitKeepsReservations", setLimitKeepsReservations},
	{"SettleAfterSetLimit", settleAfterSetLimit},
	{"CancelAfterSetLimit", cancelAfterSetLimit},
	{"CancelAfterSetLimitAndSettle", cancelAfterSetLimitAndSettle},
	{"ConcurrentSetLimitKeepsTheBound", concurrentSetLimitKeepsTheBound},
	{"ConcurrentSetLimitLosesNoToken", concurrentSetLimitLosesNoToken},
}

// setLimit changes the limit.
func (f *fixture) setLimit(limit tb.Limit) {
	f.Helper()
	l := skipUnless[hasSetLimit](f)
	if err := l.SetLimit(limit); err != nil || l.Limit() != limit {
		f.Fatalf("SetLimit(%+v): error %v, limit %+v", limit, err, l.Limit())
	}
	f.limit = limit
}

// follows fails the test unless the bucket of the key a has what an ideal bucket has, but for what
// the contract allows.
func (f *fixture) follows(b *ideal.Bucket) {
	f.Helper()
	has := b.Tokens(f.Now())
	f.levelBetween(new(big.Rat).Sub(has, b.Slack()), has, b.Quantum())
}

// setLimitKeepsTokens changes from each limit to each other. Afterwards the bucket has the tokens
// that it had, but not more than the new capacity, and RetryAfter is exact.
func setLimitKeepsTokens(s *suite) {
	for _, from := range limits {
		for _, to := range limits {
			for _, spent := range []int{1, (from.Capacity + 1) / 2, from.Capacity} {
				f := s.new(from)
				b := ideal.New(from)
				f.allowN("a", spent)
				b.Take(f.Now(), tokens(spent))
				f.Advance(from.Per / time.Duration(from.Tokens) / 3)
				f.setLimit(to)
				b.Change(to, f.Now())
				f.follows(b)
				if d := f.allowN("a", to.Capacity); d.Allowed != (d.Remaining == 0 && d.RetryAfter == 0) {
					f.Fatalf("from %+v to %+v: %+v", from, to, d)
				}
				n := f.remaining("a") + 1
				if d := f.allowN("a", n); n <= to.Capacity && d.RetryAfter != tb.Never {
					f.grantedAfter(d.RetryAfter, "a", n)
				}
			}
		}
	}
}

// The bucket has no tokens at the first reading, so the times after the change are multiples of
// the new period of a token.
func setLimitKeepsDebt(s *suite) {
	for _, from := range limits {
		for _, to := range limits {
			debt := min(from.Capacity, 1000)
			if timeFor(from, debt) == tb.Never || timeFor(to, debt+1) == tb.Never {
				continue
			}
			f := s.new(from)
			f.reserved("a", float64(from.Capacity), 0)
			f.reserved("a", float64(debt), timeFor(from, debt))
			f.setLimit(to)
			f.refused("a", 1, timeFor(to, debt+1), 0)
			if got := f.levelOf(); got.Cmp(big.NewRat(-int64(debt), 1)) != 0 {
				f.Fatalf("from %+v to %+v: %s tokens, want %d", from, to, got.FloatString(9), -debt)
			}
			if over := debt + 1 - to.Capacity; over > 0 {
				f.notReserved("a", 1, timeFor(to, over))
				f.Set(timeFor(to, over))
			}
			f.reserved("a", 1, timeFor(to, debt+1)-time.Duration(f.ns.Load()))
		}
	}
}

// A bucket that was full keeps the tokens of the smaller capacity. The supply of the time when it
// was full is lost, and the new rate fills it from the change on.
func setLimitGivesIdleBucketsNothing(s *suite) {
	for _, touched := range []bool{false, true} {
		f := s.new(perSecond(10, 1))
		f.granted("a", 1, 9)
		f.Advance(time.Hour)
		if touched {
			f.granted("a", 1, 9)
			f.Advance(time.Second)
		}
		f.setLimit(perSecond(1000, 10))
		f.refused("a", 1000, 99*time.Second, 10)
		f.refused("a", 11, time.Second/10, 10)
		f.Advance(time.Second)
		f.refused("a", 21, time.Second/10, 20)
		f.Advance(time.Hour)
		f.setLimit(perSecond(5, 10))
		f.setLimit(perSecond(1000, 10)) // the tokens beyond the smaller capacity are lost
		f.refused("a", 6, time.Second/10, 5)
		f.setLimit(perSecond(10_000_000, 10))
		f.setLimit(perSecond(10, 1))
		f.granted("a", 5, 0)
		f.refused("a", 1, time.Second, 0)
	}
}

// A bucket is not used through more changes than a limiter should have to remember. It keeps the
// tokens of the least capacity.
func manyChangesGiveIdleBucketsNothing(s *suite) {
	f := s.new(perSecond(10, 1))
	f.granted("a", 10, 0)
	for i := range 150 {
		f.Advance(time.Hour)
		f.setLimit(perSecond(10+i%2, 1))
	}
	f.setLimit(perSecond(1000, 1))
	f.refused("a", 11, time.Second, 10)
	f.granted("a", 10, 0)
	f.refused("a", 1, time.Second, 0)
	f.Advance(time.Second)
	f.granted("a", 1, 0)
}

// Many keys in different states follow more changes than a limiter should have to remember.
func setLimitIsForAllKeys(s *suite) {
	const keys = 300
	f := s.new(perSecond(100, 2))
	key := func(i int) string { return string(rune('a' + i)) }
	for i := range keys {
		f.granted(key(i), 1+i%100, 99-i%100)
	}
	for i := range 150 {
		f.Advance(10 * time.Millisecond)
		f.setLimit(perSecond(100+i%2, 2))
		if i == 70 {
			f.granted(key(0), 1, f.remaining(key(0))-1)
		}
	}
	f.setLimit(perSecond(100, 1)) // 3 tokens were supplied
	for i := range keys {
		left := min(100, 99-i%100+3)
		if i == 0 {
			left = 100 // it was full when it spent one token
		}
		if d := f.allowN(key(i), 100); d.Remaining != left && (!d.Allowed || left != 100) {
			f.Errorf("key %d: %+v, want %d tokens", i, d, left)
		}
	}
	f.setLimit(perSecond(50, 1))
	f.granted("new", 50, 0)
}

// manyChangesOfTheRateLoseNothing compares with the integral of the rate. Each change may lose
// the supply of a nanosecond.
func manyChangesOfTheRateLoseNothing(s *suite) {
	const capacity = 1 << 20
	rng := rand.New(rand.NewPCG(5, 6))
	f := s.new(perSecond(capacity, 1))
	f.granted("a", capacity, 0)
	b := ideal.New(f.limit)
	b.Take(f.Now(), tokens(capacity))
	for range 5_000 {
		f.Advance(time.Duration(rng.IntN(10_000_000)))
		per := []time.Duration{time.Second, 999_999_937, 86399 * time.Millisecond}[rng.IntN(3)]
		limit := tb.Limit{Capacity: capacity, Tokens: 1 + rng.Int64N(1000), Per: per}
		f.setLimit(limit)
		b.Change(limit, f.Now())
		if rng.IntN(100) == 0 && f.allowN("a", 1).Allowed {
			b.Take(f.Now(), tokens(1))
		}
	}
	f.follows(b)
	if lost := b.Slack(); lost.Cmp(big.NewRat(1, 100)) > 0 {
		f.Errorf("%s tokens may be lost, so the test shows nothing", lost.FloatString(6))
	}
}

// changesFollowTheIdealBucket changes rates, capacities and scales between random calls.
func changesFollowTheIdealBucket(s *suite) {
	all := []tb.Limit{
		perSecond(10, 5), perSecond(10, 333), perSecond(7, 1), perSecond(2000, 70), perSecond(90, 9000),
		perSecond(900_000, 100), {Capacity: 10_000_000, Tokens: 1, Per: 7 * time.Millisecond},
	}
	for seed := range 40 {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		limits := all[:len(all)-seed%3] // in some runs a unit is never coarse
		f := s.new(limits[0])
		b := ideal.New(f.limit)
		f.granted("a", 1, f.limit.Capacity-1) // an absent key would be full after a change
		b.Take(f.Now(), tokens(1))
		for range 100 {
			f.Advance(time.Duration(rng.Int64N(int64(time.Second))))
			n := 1 + rng.IntN(min(f.limit.Capacity, 100))
			switch rng.IntN(4) {
			case 0:
				limit := limits[rng.IntN(len(limits))]
				f.setLimit(limit)
				b.Change(limit, f.Now())
			case 1:
				if f.allowN("a", n).Allowed {
					b.Take(f.Now(), tokens(n))
				}
			default:
				if f.reserve("a", float64(n)).Allowed {
					b.Take(f.Now(), tokens(n))
				}
			}
			f.follows(b)
		}
	}
}

func setLimitChecksTheLimit(s *suite) {
	good := perSecond(10, 5)
	f := s.new(good)
	l := skipUnless[hasSetLimit](f)
	f.granted("a", 6, 4)
	for _, bad := range []tb.Limit{
		{}, perSecond(0, 1), perSecond(-1, 1), perSecond(math.MaxInt32, 1), perSecond(1, 0),
		perSecond(1, 1_000_000_001), {Capacity: 1, Tokens: 1}, {Capacity: 1, Tokens: 1, Per: -1},
	} {
		var cfg *tb.ConfigError
		if err := l.SetLimit(bad); !errors.As(err, &cfg) {
			s.Errorf("SetLimit(%+v): error %v, want a *tb.ConfigError", bad, err)
		}
		if l.Limit() != good {
			s.Fatalf("limit %+v after SetLimit(%+v), want %+v", l.Limit(), bad, good)
		}
	}
	f.refused("a", 5, time.Second/5, 4)
	f.setLimit(good)
	f.refused("a", 5, time.Second/5, 4)
}

// setLimitChangesWhenABucketIsFull changes the limit of a bucket that would be full in an hour. It
// is full in a second then, and a new key that comes later evicts it without forgiving a debt.
func setLimitChangesWhenABucketIsFull(s *suite) {
	f := s.new(tb.Limit{Capacity: 10, Tokens: 10, Per: time.Hour}, tb.WithMaxKeys(1))
	f.granted("a", 10, 0)
	f.setLimit(perSecond(10, 10))
	f.Advance(2 * time.Second)
	f.granted("b", 1, 9)
	f.nothingForgiven()
}
