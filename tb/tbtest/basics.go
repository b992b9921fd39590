package tbtest

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var basics = []test{
	{"FullBucketAllowsCapacity", fullBucketAllowsCapacity},
	{"DenialCarriesRetryAfter", denialCarriesRetryAfter},
	{"RefillRestoresTokens", refillRestoresTokens},
	{"PerKeyIsolated", perKeyIsolated},
	{"ConcurrentAllowGrantsAtMostCapacity", concurrentAllowGrantsAtMostCapacity},
	{"ImpossibleConfigurationIsAConfigError", impossibleConfigurationIsAConfigError},
	{"DefaultClockIsMonotonic", defaultClockIsMonotonic},
	{"ClockIsReadOncePerCall", clockIsReadOncePerCall},
	{"ContextIsIgnored", contextIsIgnored},
}

func fullBucketAllowsCapacity(s *suite) {
	f := s.new(perSecond(10, 5))
	for i := range 10 {
		f.granted("a", 1, 9-i)
	}
	f.refused("a", 1, time.Second/5, 0)
}

func denialCarriesRetryAfter(s *suite) {
	for _, limit := range []tb.Limit{
		perSecond(1, 1), perSecond(3, 1000), perSecond(1, 1_000_000_000),
		{Capacity: 7, Tokens: 1, Per: 24 * time.Hour},
	} {
		f := s.new(limit)
		f.allowN("a", limit.Capacity)
		for range 100 {
			if d := f.allow("a"); !d.Allowed && d.RetryAfter <= 0 {
				s.Fatalf("limit %+v: refused with RetryAfter %v", limit, d.RetryAfter)
			}
			f.Advance(limit.Per / time.Duration(limit.Tokens) / 7)
		}
	}
}

func refillRestoresTokens(s *suite) {
	for _, limit := range []tb.Limit{
		perSecond(1, 1), perSecond(10, 5), perSecond(50, 1000), perSecond(10, 1_000_000),
		{Capacity: 4, Tokens: 1, Per: 10 * time.Second},
		{Capacity: 20, Tokens: 1, Per: 24 * time.Hour},
	} {
		f := s.new(limit)
		f.granted("a", limit.Capacity, 0)
		for range 20 {
			f.Advance(limit.Per / time.Duration(limit.Tokens))
			f.granted("a", 1, 0)
			f.refused("a", 1, limit.Per/time.Duration(limit.Tokens), 0)
		}
	}
}

func perKeyIsolated(s *suite) {
	f := s.new(perSecond(3, 1))
	f.granted("a", 3, 0)
	f.refused("a", 1, time.Second, 0)
	for i := range 3 {
		f.granted("b", 1, 2-i)
	}
	f.granted("", 3, 0) // the empty string is a key too
}

func concurrentAllowGrantsAtMostCapacity(s *suite) {
	const callers, capacity = 100, 50
	for range 20 {
		f := s.new(perSecond(capacity, 1))
		for _, want := range []int64{capacity, 1, 1} {
			if n := f.concurrentGrants(callers); n != want {
				s.Fatalf("%d calls of %d granted, want %d", n, callers, want)
			}
			f.Advance(time.Second)
		}
	}
}

// concurrentGrants returns how many of several goroutines are granted a token of the key a.
func (f *fixture) concurrentGrants(callers int) int64 {
	var grants atomic.Int64
	var ready, done sync.WaitGroup
	var gate atomic.Bool
	for range callers {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			for !gate.Load() {
				runtime.Gosched()
			}
			if d, err := f.Allow(context.Background(), "a"); err == nil && d.Allowed {
				grants.Add(1)
			}
		})
	}
	ready.Wait()
	gate.Store(true)
	done.Wait()
	return grants.Load()
}

func impossibleConfigurationIsAConfigError(s *suite) {
	good := perSecond(1, 1)
	for _, tt := range []struct {
		limit  tb.Limit
		option tb.Option
		field  string
	}{
		{limit: tb.Limit{}, field: "Capacity"},
		{limit: perSecond(0, 1), field: "Capacity"},
		{limit: perSecond(-1, 1), field: "Capacity"},
		{limit: perSecond(math.MaxInt32, 1), field: "Capacity"},
		{limit: perSecond(1, 0), field: "Tokens"},
		{limit: perSecond(1, math.MinInt64), field: "Tokens"},
		{limit: perSecond(1, 1_000_000_001), field: "Tokens"},
		{limit: tb.Limit{Capacity: 1, Tokens: 1}, field: "Per"},
		{limit: tb.Limit{Capacity: 1, Tokens: 1, Per: -1}, field: "Per"},
		{limit: good, option: tb.WithMaxKeys(0), field: "WithMaxKeys"},
		{limit: good, option: tb.WithMaxKeys(-1), field: "WithMaxKeys"},
		{limit: good, option: tb.WithClock(nil), field: "WithClock"},
		{limit: good, option: tb.WithOverflow(-1), field: "WithOverflow"},
	} {
		_, err := s.newLimiter(tt.limit, tt.option)
		var cfg *tb.ConfigError
		if !errors.As(err, &cfg) || cfg.Field != tt.field || cfg.Range == "" {
			s.Errorf("limit %+v: got error %v, want a *tb.ConfigError for %s", tt.limit, err, tt.field)
		}
	}
}

func defaultClockIsMonotonic(s *suite) {
	synctest.Test(s.T, func(t *testing.T) { // in its bubble, only Sleep moves the clock
		limit := perSecond(1, 3)
		l, err := s.newLimiter(limit)
		if err != nil {
			t.Fatal(err)
		}
		f := &fixture{suite: &suite{t, s.newLimiter}, Limiter: l, limit: limit}
		time.Sleep(time.Hour)
		f.granted("a", 1, 0)
		f.refused("a", 1, 333_333_334, 0)
		time.Sleep(333_333_333)
		f.refused("a", 1, 1, 0)
		time.Sleep(time.Nanosecond)
		f.granted("a", 1, 0)
	})
}

func clockIsReadOncePerCall(s *suite) {
	var reads int
	now := func() time.Time { reads++; return start }
	l, err := s.newLimiter(perSecond(2, 1), tb.WithClock(now), tb.WithMaxKeys(1))
	if err != nil {
		s.Fatal(err)
	}
	for i, key := range []string{"a", "a", "a", "b", "a"} { // calls that grant, refuse and evict
		reads = 0
		if _, err := l.Allow(context.Background(), key); err != nil || reads != 1 {
			s.Errorf("call %d: %d clock readings, want 1 (error %v)", i, reads, err)
		}
	}
}

func contextIsIgnored(s *suite) {
	f := s.new(perSecond(2, 1))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d, err := f.Allow(ctx, "a")
	f.check(d, err)
	if !d.Allowed {
		s.Errorf("with a cancelled context: %+v, want granted", d)
	}
}
