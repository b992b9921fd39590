package adapt_test

import (
	"math"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/adapt"
)

// TestUnrelatedTrouble requires that answers that are slow, or fail, at every rate do not keep
// the rate down.
func TestUnrelatedTrouble(t *testing.T) {
	t.Run("slow", func(t *testing.T) {
		f, c := controller(t)
		for range 40 { // of 100 requests two are slow
			f.load(c, 500*time.Millisecond, 10*time.Millisecond, adapt.Request.Done)
			r := c.Begin()
			f.now = f.now.Add(time.Second)
			r.Done()
		}
		if s := c.Stats(); !s.ExcusedTail || s.Rate < 50 {
			t.Errorf("%+v, want a slow tail that is excused", s)
		}
	})
	t.Run("failed", func(t *testing.T) {
		f, c := controller(t)
		n := 0
		f.load(c, 20*time.Second, 10*time.Millisecond, func(r adapt.Request) {
			if n++; n%10 == 0 {
				r.Fail(0)
			} else {
				r.Done()
			}
		})
		if s := c.Stats(); !s.ExcusedFailures || s.Rate < 50 {
			t.Errorf("%+v, want failures that are excused", s)
		}
	})
}

// The longest Retry-After stops growth, for 30 s at most.
func TestRetryAfterStopsGrowth(t *testing.T) {
	for wait, held := range map[time.Duration]time.Duration{
		math.MaxInt64: 29 * time.Second, 20 * time.Second: 15 * time.Second,
	} {
		f, c := controller(t)
		isLong := false
		f.load(c, time.Second, time.Millisecond, func(r adapt.Request) {
			if isLong = !isLong; isLong {
				r.Fail(wait)
			} else {
				r.Fail(time.Second)
			}
		})
		low := c.Rate()
		if f.load(c, held, 10*time.Millisecond, adapt.Request.Done); low >= 100 || c.Rate() > low {
			t.Errorf("rate %v after %v of %v, want no more than %v", c.Rate(), held, wait, low)
		}
		if f.load(c, 20*time.Second, 10*time.Millisecond, adapt.Request.Done); c.Rate() <= low {
			t.Errorf("rate %v 20 s later, want growth", c.Rate())
		}
	}
}

// TestRetryAfterOfFewRequests requires that a client cannot stop growth with answers that ask it
// to wait, unless they are more than is tolerated.
func TestRetryAfterOfFewRequests(t *testing.T) {
	f, c := controller(t)
	n := 0
	f.load(c, 20*time.Second, 10*time.Millisecond, func(r adapt.Request) {
		if n++; n%100 == 0 {
			r.Fail(time.Hour)
		} else {
			r.Done()
		}
	})
	if c.Rate() != 1000 {
		t.Errorf("rate %v, want the maximum", c.Rate())
	}
}

// The answer that ends an interval counts in it: without it there are too few.
func TestIntervalHasItsLastAnswer(t *testing.T) {
	f, c := controller(t)
	var requests [20]adapt.Request
	for i := range requests {
		requests[i] = c.Begin()
	}
	for i, r := range requests {
		if i == len(requests)-1 {
			f.now = f.now.Add(time.Second)
		}
		r.Fail(0)
	}
	if s := c.Stats(); s.Lowered != 1 || s.Failures == 0 {
		t.Errorf("%+v, want a lower rate", s)
	}
}

func TestClockStepsBack(t *testing.T) {
	f, c := controller(t)
	f.load(c, 2*time.Second, time.Millisecond, func(r adapt.Request) { r.Fail(time.Hour) })
	r := c.Begin()
	f.now = f.now.Add(-24 * time.Hour)
	r.Done()
	low := c.Rate()
	f.load(c, 10*time.Second, 10*time.Millisecond, adapt.Request.Done)
	if c.Rate() <= low {
		t.Errorf("rate %v, want growth after the clock stepped back", c.Rate())
	}
	f.load(c, time.Second, time.Millisecond, func(r adapt.Request) { r.Fail(0) })
	low = c.Rate()
	f.load(c, 10*time.Second, 10*time.Millisecond, adapt.Request.Done)
	if c.Rate() <= low {
		t.Errorf("rate %v, want no wait from before the clock stepped back", c.Rate())
	}
	high := c.Rate()
	f.now = f.now.Add(48 * time.Hour)
	f.load(c, time.Second, 10*time.Millisecond, adapt.Request.Done)
	if c.Rate() < high/2 {
		t.Errorf("rate %v after the clock stepped forward, was %v", c.Rate(), high)
	}
}

func TestCancel(t *testing.T) {
	f, c := controller(t)
	f.load(c, 5*time.Second, time.Millisecond, adapt.Request.Cancel)
	if s := c.Stats(); s.P99 != 0 || s.Rate != 100 {
		t.Errorf("%+v, want no latency of clients that left early", s)
	}
	f.load(c, 5*time.Second, 400*time.Millisecond, adapt.Request.Cancel)
	if s := c.Stats(); s.P99 <= target || s.Rate >= 100 {
		t.Errorf("%+v, want the latency of clients that left late", s)
	}
}

// A client that leaves just at the target shows no latency above it.
func TestCancelAtTheTarget(t *testing.T) {
	for late, known := range map[time.Duration]bool{0: false, 1: true} {
		f, c := controller(t)
		r := c.Begin()
		f.now = f.now.Add(target + late)
		r.Cancel()
		f.now = f.now.Add(2 * time.Second)
		c.Refused() // ends the interval
		if s := c.Stats(); s.P99 > 0 != known {
			t.Errorf("%v after the target: %+v", late, s)
		}
	}
}

// TestLateGoroutine requires that a reading that is a little late is not a clock that steps back.
func TestLateGoroutine(t *testing.T) {
	f, c := controller(t)
	f.load(c, time.Second, time.Millisecond, func(r adapt.Request) { r.Fail(time.Hour) })
	low := c.Rate()
	for range 20 {
		f.load(c, time.Second, 10*time.Millisecond, adapt.Request.Done)
		f.now = f.now.Add(-500 * time.Millisecond)
		c.Refused()
		f.now = f.now.Add(500 * time.Millisecond)
	}
	if c.Rate() > low {
		t.Errorf("rate %v within the wait, want %v", c.Rate(), low)
	}
}

func TestLatencyIsBounded(t *testing.T) {
	f, c := controller(t)
	n := 0
	f.load(c, 200*time.Second, 100*time.Second, func(r adapt.Request) {
		r.Done()
		if n++; n != 5000 {
			return
		}
		if s := c.Stats(); s.P99 < 50*target || s.P50 > 10000*target {
			t.Errorf("%+v, want a p99 of 64 targets or more", s)
		}
	})
}

func TestNegativeLatency(t *testing.T) {
	f, c := controller(t)
	f.now = f.now.Add(10 * time.Second)
	open := make([]adapt.Request, 30)
	for i := range open {
		open[i] = c.Begin()
	}
	f.now = f.now.Add(-time.Second)
	for _, r := range open {
		r.Done()
	}
	f.now = f.now.Add(2 * time.Second)
	c.Refused()
	if s := c.Stats(); s.P99 > target || c.Rate() < 100 {
		t.Errorf("%+v, want latencies of 0", s)
	}
}

func TestRequestThatEndsTwice(t *testing.T) {
	_, c := controller(t)
	r := c.Begin()
	r.Done()
	r.Done()
	if s := c.Stats(); s.InFlight != 0 {
		t.Errorf("%d requests in flight, want 0", s.InFlight)
	}
}
