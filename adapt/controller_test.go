package adapt_test

import (
	"cmp"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/adapt"
	"github.com/seed-181794aa/ratelimit/tb"
)

type fake struct {
	limit tb.Limit
	calls int
	err   error
	now   time.Time
}

func (f *fake) SetLimit(l tb.Limit) error {
	f.calls++
	if f.err == nil {
		f.limit = l
	}
	return f.err
}

func (f *fake) rate() float64 { return float64(f.limit.Tokens) / f.limit.Per.Seconds() }

const target = 200 * time.Millisecond

func config() adapt.Config {
	return adapt.Config{Capacity: 10, Min: 10, Max: 1000, Start: 100, TargetP99: target}
}

func controller(t *testing.T) (*fake, *adapt.Controller) {
	t.Helper()
	f := &fake{now: time.Unix(1e9, 0)}
	c := config()
	c.Now = func() time.Time { return f.now }
	ctl, err := adapt.New(f, c)
	if err != nil {
		t.Fatal(err)
	}
	return f, ctl
}

// load makes 100 requests a second for d. Each has the latency and ends by end. Another one is
// refused for each of them.
func (f *fake) load(c *adapt.Controller, d, latency time.Duration, end func(adapt.Request)) {
	type open struct {
		at time.Time
		r  adapt.Request
	}
	var all []open
	for stop := f.now.Add(d); f.now.Before(stop); f.now = f.now.Add(10 * time.Millisecond) {
		for len(all) > 0 && !all[0].at.After(f.now) {
			end(all[0].r)
			all = all[1:]
		}
		all = append(all, open{f.now.Add(latency), c.Begin()})
		c.Refused()
	}
	for _, o := range all {
		f.now = o.at
		end(o.r)
	}
}

// A configuration may be at its bounds, and not beyond. The error names the field.
func TestConfigIsValidated(t *testing.T) {
	below := func(x float64) float64 { return math.Nextafter(x, 0) }
	above := func(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }
	for _, tt := range []struct {
		min, max, start float64
		target          time.Duration
		capacity        int
		field           string
	}{
		{0.001, 1e9, 0, target, 1, ""}, {5, 5, 5, target, 1, ""}, {1e9, 1e9, 1e9, target, 1, ""},
		{5, 6, 5, time.Microsecond, 1, ""}, {5, 6, 6, time.Hour, 1, ""},
		{5, 6, 5, target, 0, "Capacity"}, {below(0.001), 1e9, 0, target, 1, "Min"},
		{above(1e9), 1e9, 0, target, 1, "Min"}, {math.NaN(), 6, 0, target, 1, "Min"},
		{math.Inf(1), 6, 0, target, 1, "Min"}, {0.001, above(1e9), 0, target, 1, "Max"},
		{5, below(5), 0, target, 1, "Max"}, {5, math.NaN(), 0, target, 1, "Max"},
		{5, 6, below(5), target, 1, "Start"}, {5, 6, above(6), target, 1, "Start"},
		{5, 6, math.NaN(), target, 1, "Start"}, {5, 6, 0, time.Microsecond - 1, 1, "TargetP99"},
		{5, 6, 0, time.Hour + 1, 1, "TargetP99"},
	} {
		f, c := &fake{}, adapt.Config{
			Capacity: tt.capacity, Min: tt.min, Max: tt.max, Start: tt.start, TargetP99: tt.target,
		}
		_, err := adapt.New(f, c)
		bad := &tb.ConfigError{}
		if errors.As(err, &bad); bad.Field != tt.field || (err == nil) != (tt.field == "") {
			t.Errorf("%+v: %v, want an error of %q", tt, err, tt.field)
		}
		if err == nil && (f.rate() != cmp.Or(tt.start, tt.max) || f.limit.Validate() != nil) {
			t.Errorf("%+v: limit %+v, want a start at the start, or else the maximum", tt, f.limit)
		}
	}
	var configError *tb.ConfigError
	if _, err := adapt.New(nil, config()); !errors.As(err, &configError) {
		t.Errorf("nil: %v, want a *tb.ConfigError", err)
	}
}

func TestSetLimitError(t *testing.T) {
	refuse := errors.New("refused")
	if _, err := adapt.New(&fake{err: refuse}, config()); !errors.Is(err, refuse) {
		t.Errorf("New: %v, want the limiter's error", err)
	}
	f, c := controller(t)
	f.err = refuse
	f.load(c, 5*time.Second, 20*time.Millisecond, adapt.Request.Done)
	if s := c.Stats(); c.Rate() != 100 || !errors.Is(s.Err, refuse) || s.Raised+s.Lowered != 0 {
		t.Errorf("rate %v, %+v, want the first rate and the error", c.Rate(), s)
	}
	f.err = nil
	f.load(c, 300*time.Millisecond, 20*time.Millisecond, adapt.Request.Done)
	if c.Rate() <= 100 || c.Rate() > 400 {
		t.Errorf("rate %v, want growth from the rate that was set last", c.Rate())
	}
	f.load(c, 5*time.Second, 20*time.Millisecond, adapt.Request.Done)
	if s := c.Stats(); c.Rate() != f.rate() || c.Rate() <= 100 || s.Err != nil {
		t.Errorf("rate %v, %+v, want growth", c.Rate(), s)
	}
}

func TestRateGrowsOnlyWhileTheLimiterRefuses(t *testing.T) {
	f, c := controller(t)
	if s := c.Stats(); s != (adapt.Stats{Rate: 100}) {
		t.Errorf("%+v at first, want only a rate", s)
	}
	granted := func(n int) {
		for range n {
			r := c.Begin()
			f.now = f.now.Add(10 * time.Millisecond)
			r.Done()
		}
	}
	granted(1000)
	if c.Rate() != 100 || f.calls != 1 {
		t.Errorf("rate %v after %d calls, want no change", c.Rate(), f.calls)
	}
	f.load(c, time.Second, 10*time.Millisecond, adapt.Request.Done)
	rate := c.Rate()
	if s := c.Stats(); rate <= 100 || s.Raised != uint64(f.calls-1) || s.Lowered != 0 ||
		s.P50 < 9*time.Millisecond || s.P50 > 12*time.Millisecond {
		t.Errorf("rate %v after %d calls, %+v, want growth", rate, f.calls, s)
	}
	granted(1000) // the interval of the last refusals ends
	if rate = c.Rate(); rate == 1000 {
		t.Fatal("the rate is the greatest one already")
	}
	if granted(1000); c.Rate() != rate {
		t.Errorf("rate %v and then %v, want no growth without refusals", rate, c.Rate())
	}
	f.load(c, 15*time.Second, 10*time.Millisecond, adapt.Request.Done)
	if c.Rate() != 1000 || f.rate() != 1000 {
		t.Errorf("rate %v, want the maximum", c.Rate())
	}
}

func TestOnlyFailures(t *testing.T) {
	f, c := controller(t)
	f.load(c, 5*time.Second, time.Millisecond, func(r adapt.Request) { r.Fail(0) })
	if c.Rate() != 10 {
		t.Errorf("rate %v, want the minimum", c.Rate())
	}
	if s := c.Stats(); s.Failures < 0.9 || s.ExcusedFailures {
		t.Errorf("%+v, want failures that are not excused", s)
	}
	f.load(c, 10*time.Second, 10*time.Millisecond, adapt.Request.Done)
	if c.Rate() < 100 {
		t.Errorf("rate %v 10 s after the last failure, want at least 100", c.Rate())
	}
}

// An interval with 20 answers ends after 250 ms, and one with fewer after 2 s. Without an answer it
// ends if 20 requests wait: the downstream stalls.
func TestEndsOfIntervals(t *testing.T) {
	const pace = 250 * time.Millisecond
	for _, tt := range []struct {
		begun, ended int
		at           time.Duration
		ends         bool
	}{
		{20, 20, pace - 1, false}, {20, 20, pace, true}, {19, 19, pace, false},
		{1, 1, 8*pace - 1, false}, {1, 1, 8 * pace, true},
		{20, 0, 8*pace - 1, false}, {20, 0, 8 * pace, true}, {19, 0, 8 * pace, false},
	} {
		f, c := controller(t)
		for i := range tt.begun {
			if r := c.Begin(); i < tt.ended {
				r.Fail(0)
			}
		}
		f.now = f.now.Add(tt.at)
		c.Refused()
		if lower := c.Rate() < 100; lower != tt.ends {
			t.Errorf("%+v: rate %v", tt, c.Rate())
		}
	}
}

// TestConcurrentReports requires that calls of many goroutines are all counted, and that no
// two calls of SetLimit overlap.
func TestConcurrentReports(t *testing.T) {
	var inside, overlaps atomic.Int32
	f := adapt.LimiterFunc(func(tb.Limit) error {
		if inside.Add(1) > 1 {
			overlaps.Add(1)
		}
		inside.Add(-1)
		return nil
	})
	conf := config()
	conf.TargetP99 = 10 * time.Microsecond
	var clock atomic.Int64 // each reading is a microsecond later
	conf.Now = func() time.Time { return time.Unix(0, clock.Add(1000)) }
	c, err := adapt.New(f, conf)
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for n := range 20_000 {
				r := c.Begin()
				switch (n + i) % 50 {
				case 0:
					r.Fail(time.Second)
				case 1:
					r.Cancel()
				default:
					r.Done()
				}
				c.Refused()
				if n%1000 == 0 {
					c.Stats()
				}
			}
		})
	}
	callers.Wait()
	s := c.Stats()
	if s.InFlight != 0 || overlaps.Load() != 0 || s.Raised+s.Lowered == 0 {
		t.Errorf("%+v, %d calls of SetLimit overlap, want no open request", s, overlaps.Load())
	}
}

// The percentiles are as exact for the shortest target, of which 1/256 is no whole number of
// nanoseconds.
func TestPercentilesOfTheShortestTarget(t *testing.T) {
	now := time.Unix(0, 0)
	c, err := adapt.New(adapt.LimiterFunc(func(tb.Limit) error { return nil }), adapt.Config{
		Capacity: 1, Min: 1, Max: 1, TargetP99: time.Microsecond,
		Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 100_000 {
		r := c.Begin()
		now = now.Add(time.Microsecond)
		r.Done()
	}
	for _, d := range []time.Duration{c.Stats().P50, c.Stats().P99} {
		if d < time.Microsecond*15/16 || d > time.Microsecond*17/16 {
			t.Errorf("a percentile of latencies of 1µs is %v", d)
		}
	}
}
