package tbtest

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/ideal"
	"github.com/seed-181794aa/ratelimit/tb"
)

var times = []test{
	{"WaitIsExactOnBothSides", waitIsExactOnBothSides},
	{"RefusalsLeaveNoDrift", refusalsLeaveNoDrift},
	{"ThirdsAddUp", thirdsAddUp},
	{"LateReadingIsDecidedOnTheBucketAsItStands", lateReadingIsDecidedOnTheBucketAsItStands},
	{"BoundWithBackwardClock", boundWithBackwardClock},
	{"BoundWithLateConcurrentReadings", boundWithLateConcurrentReadings},
	{"TinyRates", tinyRates},
	{"HugeRates", hugeRates},
	{"CenturiesIdle", centuriesIdle},
	{"ReadingBeforeTheFirst", readingBeforeTheFirst},
	{"BucketIsNeverMoreThanFull", bucketIsNeverMoreThanFull},
}

// limits covers the range of limits, and rates that are odd fractions.
var limits = []tb.Limit{
	perSecond(1, 1), perSecond(10, 5), perSecond(10, 3), perSecond(100, 7), perSecond(5, 1_000_000),
	perSecond(1000, 999_999_937), perSecond(1, 1_000_000_000), perSecond(1<<30, 1_000_000_000),
	{Capacity: 3, Tokens: 7, Per: 86399 * time.Second},
	{Capacity: 1 << 30, Tokens: 1, Per: 24 * time.Hour},
	{Capacity: 10, Tokens: 1, Per: 100 * 365 * 24 * time.Hour},
	{Capacity: 2, Tokens: 1<<61 - 1, Per: 1<<62 + 3},
	{Capacity: 900, Tokens: 982_451_653, Per: 1_000_000_007},
	{Capacity: 17, Tokens: 1, Per: 1},
}

func waitIsExactOnBothSides(s *suite) {
	for _, limit := range limits {
		f := s.new(limit)
		f.Advance(12345 * time.Nanosecond)
		for _, n := range []int{1, (limit.Capacity + 1) / 2, limit.Capacity} {
			f.allowN("a", limit.Capacity-f.remaining("a")%limit.Capacity)
			if d := f.emptied(n); d.RetryAfter != tb.Never { // not beyond 292 years
				f.grantedAfter(d.RetryAfter, "a", n)
			}
		}
	}
}

// emptied takes n tokens of the key a until they are refused, and returns the refusal. It fails the
// test of a limiter that goes on granting them.
func (f *fixture) emptied(n int) tb.Decision {
	f.Helper()
	for range 1000 {
		if d := f.allowN("a", n); !d.Allowed {
			return d
		}
	}
	f.Fatalf("limit %+v: 1000 calls of %d tokens granted at one instant", f.limit, n)
	return tb.Decision{}
}

// remaining returns the whole tokens of key. It makes a call that is refused.
func (f *fixture) remaining(key string) int { return f.allowN(key, f.limit.Capacity+1).Remaining }

func refusalsLeaveNoDrift(s *suite) {
	f := s.new(perSecond(2, 3)) // the bucket is never full, so all supply counts
	f.granted("a", 2, 0)
	const calls, seconds = 200_000, 100
	grants := 0
	for i := range calls {
		f.Set(time.Duration(i+1) * seconds * time.Second / calls)
		if f.allow("a").Allowed {
			grants++
		}
	}
	if grants != 3*seconds {
		s.Errorf("%d grants in %d s at 3 per second, want %d", grants, seconds, 3*seconds)
	}
}

func thirdsAddUp(s *suite) {
	f := s.new(perSecond(1, 3))
	f.granted("a", 1, 0)
	for i := 1; i <= 3000; i++ {
		f.Set(thirds(i))
		f.granted("a", 1, 0)
		f.refused("a", 1, thirds(i+1)-thirds(i), 0)
	}
}

// thirds returns n thirds of a second, rounded up to a nanosecond.
func thirds(n int) time.Duration { return (time.Duration(n)*time.Second + 2) / 3 }

func lateReadingIsDecidedOnTheBucketAsItStands(s *suite) {
	f := s.new(perSecond(10, 5))
	for _, tt := range []struct {
		reading   time.Duration
		n         int
		retry     time.Duration
		remaining int
	}{
		{10 * time.Second, 8, 0, 2},
		{9 * time.Second, 1, 0, 1},                // granted, and time does not move back
		{10 * time.Second, 2, time.Second / 5, 1}, // nothing was credited twice
		{5 * time.Second, 2, 5200 * time.Millisecond, 1},
		{-time.Hour, 2, time.Hour + 10200*time.Millisecond, 1},
		{10199999999, 2, 1, 1},
		{10200 * time.Millisecond, 2, 0, 0},
		{0, 10, 12200 * time.Millisecond, 0},
		{12200 * time.Millisecond, 10, 0, 0},
	} {
		f.Set(tt.reading)
		if tt.retry > 0 {
			f.refused("a", tt.n, tt.retry, tt.remaining)
		} else {
			f.granted("a", tt.n, tt.remaining)
		}
	}
}

func boundWithBackwardClock(s *suite) {
	for seed, limit := range limits {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		f := s.new(limit)
		token := max(1, int64(limit.Per)/limit.Tokens)
		span := int64(min(float64(token)*float64(limit.Capacity), math.MaxInt64/1000))
		var latest time.Duration
		grants := []grant{{n: limit.Capacity}}
		f.allowN("a", limit.Capacity) // brings the reading 0
		for range 300 {
			now := latest + time.Duration(rng.Int64N(span/50+2)) - time.Duration(rng.Int64N(span/50+2))
			f.Set(now)
			before := latest
			latest = max(latest, now)
			n := 1 + rng.IntN(limit.Capacity)/(1+rng.IntN(10))
			if f.allowN("a", n).Allowed {
				grants = append(grants, grant{before: before, after: latest, n: n})
			}
		}
		f.checkBound(grants)
	}
}

func boundWithLateConcurrentReadings(s *suite) {
	if s.lateCalls(perSecond(10, 1_000_000), func(tb.Limiter, func() bool) {}) == 0 {
		s.Error("no reading was late, so the test shows nothing")
	}
}

// lateCalls makes concurrent calls whose readings are late, and fails the test if C1 does not hold.
// Two goroutines call meanwhile, which must return when the calls are over. lateCalls returns how
// many readings were late.
func (s *suite) lateCalls(limit tb.Limit, meanwhile func(l tb.Limiter, over func() bool)) int64 {
	const callers, calls = 32, 500
	f := s.new(limit)
	var ticks, grants, late, done atomic.Int64
	now := func() time.Time { // the reading is late, because other callers run in between
		ns := ticks.Add(100)
		runtime.Gosched()
		if ticks.Load() > ns {
			late.Add(1)
		}
		return start.Add(time.Duration(ns))
	}
	l, err := s.newLimiter(f.limit, tb.WithClock(now))
	if err != nil {
		s.Fatal(err)
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			defer done.Add(1)
			for range calls {
				if d, err := l.Allow(context.Background(), "a"); err == nil && d.Allowed {
					grants.Add(1)
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() { meanwhile(l, func() bool { return done.Load() == callers }) })
	}
	wg.Wait()
	f.atMost(int(grants.Load()), time.Duration(ticks.Load()))
	if grants.Load() == 0 {
		s.Error("no call was granted, so the test shows nothing")
	}
	return late.Load()
}

func tinyRates(s *suite) {
	century := 100 * 365 * 24 * time.Hour
	f := s.new(tb.Limit{Capacity: 2, Tokens: 1, Per: century})
	f.granted("a", 2, 0)
	f.refused("a", 1, century, 0)
	f.Advance(century - 1)
	f.refused("a", 1, 1, 0)
	f.refused("a", 2, century+1, 0)
	f.Advance(1)
	f.granted("a", 1, 0)

	f = s.new(tb.Limit{Capacity: 1, Tokens: 1, Per: math.MaxInt64})
	f.granted("a", 1, 0)
	f.Advance(1)
	f.refused("a", 1, math.MaxInt64-1, 0)
	f.Set(math.MaxInt64)
	f.granted("a", 1, 0)
}

func hugeRates(s *suite) {
	f := s.new(perSecond(1000, 1_000_000_000))
	f.granted("a", 1000, 0)
	f.refused("a", 1, 1, 0)
	f.refused("a", 1000, 1000, 0)
	f.Advance(1)
	f.granted("a", 1, 0)
	f.Advance(999)
	f.refused("a", 1000, 1, 999)
	f.Advance(1)
	f.granted("a", 1000, 0)
	f.Advance(time.Hour)
	f.granted("a", 1000, 0)
}

func centuriesIdle(s *suite) {
	for _, limit := range limits {
		f := s.new(limit)
		f.allowN("a", limit.Capacity)
		f.Set(math.MaxInt64) // 292 years
		full := multiple(math.MaxInt64, ideal.Rate(limit)).Cmp(tokens(limit.Capacity)) >= 0
		if d := f.allowN("a", limit.Capacity); full && !d.Allowed {
			s.Errorf("limit %+v: not full after 292 years: %+v", limit, d)
		}
		f.Set(0) // late by 292 years
		f.allowN("a", 1)
		f.Set(math.MinInt64 / 2)
		f.allowN("a", 1)
	}
}

func readingBeforeTheFirst(s *suite) {
	f := s.new(perSecond(10, 5))
	f.granted("a", 10, 0) // the first reading
	f.Set(-100 * time.Second)
	f.refused("a", 1, 100*time.Second+time.Second/5, 0)
	f.granted("b", 10, 0)
	f.refused("b", 1, time.Second/5, 0)
	f.Advance(time.Second)
	f.granted("b", 5, 0)
	f.Set(-100 * 365 * 24 * time.Hour)
	f.granted("c", 10, 0)
	f.Advance(time.Second)
	f.granted("c", 5, 0)
	f.Set(math.MinInt64)
	f.granted("d", 10, 0)
	f.refused("a", 10, tb.Never, 0) // in more than 292 years from this reading
}

func bucketIsNeverMoreThanFull(s *suite) {
	for _, limit := range limits {
		f := s.new(limit)
		f.allowN("a", 1)
		f.Set(math.MaxInt64 / 2)
		for range 3 { // a full bucket gains nothing
			if d := f.allowN("a", limit.Capacity); d.Allowed {
				f.refused("a", limit.Capacity, f.allowN("a", limit.Capacity).RetryAfter, 0)
			}
		}
	}
}
