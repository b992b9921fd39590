package tbtest

import (
	"errors"
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// waiting returns a charge that may wait.
func (f *fixture) waiting(key string, cost float64, within time.Duration) waitingCharge {
	f.Helper()
	c := chargeAs[waitingCharge](f, key, cost)
	c.MayWait(within)
	return c
}

func chargeMayWait(s *suite) {
	f := s.new(perSecond(10, 2))
	f.granted("a", 9, 1)
	for _, tt := range []struct {
		cost         float64
		within       time.Duration
		delay, retry time.Duration
	}{
		{3, 0, 0, time.Second},
		{3, time.Second - 1, 0, 1},
		{3, time.Second, time.Second, 0},
		{2, time.Second, 0, time.Second},
		{2, tb.Never, 2 * time.Second, 0},      // the debt is 4
		{7, tb.Never, 11 * time.Second / 2, 0}, // more than one capacity
		{7, time.Second, 0, 8 * time.Second},
		{11, tb.Never, 0, tb.Never},
		{6, tb.Never, 17 * time.Second / 2, 0},
	} {
		c := f.waiting("a", tt.cost, tt.within)
		checked, err := c.Peek(f.Now())
		f.check(checked, err)
		d, err := c.Take(f.Now())
		f.check(d, err)
		if d != checked || d.RetryAfter != tt.retry || c.Delay() != tt.delay {
			s.Errorf("%v tokens within %v: Peek = %+v, Take = %+v, delay %v; want %v, %v",
				tt.cost, tt.within, checked, d, c.Delay(), tt.retry, tt.delay)
		}
	}
	c := f.waiting("a", 1, tb.Never)
	c.MayWait(0)
	f.takes(c, refused(9*time.Second, 0))
}

// A charge that gets an invalid argument is inert. What it has taken before can be given back,
// until it is taken again. A charge may not wait and leave tokens or hold: it would give out its
// tokens before a slot.
func chargeChecksItsArguments(s *suite) {
	type bad struct {
		field string // of the *tb.ConfigError, or "" for tb.ErrInvalidCost
		set   func(guardedCharge)
	}
	all := []bad{
		{"within", func(c guardedCharge) { c.MayWait(-1) }},
		{"within", func(c guardedCharge) { c.MayWait(math.MinInt64) }},
		{"within", func(c guardedCharge) { c.Keep(1e-6); c.MayWait(1) }},
		{"within", func(c guardedCharge) { c.HoldOnRefusal(time.Minute); c.MayWait(1) }},
		{"keep", func(c guardedCharge) { c.MayWait(1); c.Keep(1e-6) }},
		{"hold", func(c guardedCharge) { c.MayWait(1); c.HoldOnRefusal(time.Minute) }},
		{"hold", func(c guardedCharge) { c.HoldOnRefusal(-1) }},
	}
	for _, tokens := range []float64{-1, -1e-300, math.NaN(), math.Inf(1), math.Inf(-1)} {
		all = append(all, bad{"", func(c guardedCharge) { c.Keep(tokens) }})
	}
	for i, bad := range all {
		for _, left := range []int{4, 2} {
			f := s.new(perSecond(10, 1))
			f.granted("a", 6, 4)
			c := chargeAs[guardedCharge](f, "a", 2)
			valid := func() { c.MayWait(0); c.Keep(0); c.HoldOnRefusal(0) }
			c.MayWait(1)
			valid()
			f.takes(c, granted(2))
			bad.set(c)
			if left == 4 {
				c.Cancel()
			}
			valid() // and inert all the same
			_, err := c.Take(f.Now())
			var e *tb.ConfigError
			if bad.field == "" && !errors.Is(err, tb.ErrInvalidCost) ||
				bad.field != "" && (!errors.As(err, &e) || e.Field != bad.field) {
				s.Errorf("argument %d: %v, want an error for %q", i, err, bad.field)
			}
			f.isInert(c, err)
			f.granted("a", left, 0)
		}
	}
}

// One charge refuses and the other one may wait; then both are taken.
func waitingChargeInTakeAll(s *suite) {
	f := s.new(perSecond(10, 1))
	f.granted("inner", 10, 0)
	f.granted("outer", 10, 0)
	inner := f.waiting("inner", 4, tb.Never)
	f.takeCharges(false, inner, f.charge("outer", 1))
	f.levelIs("inner", tb.Level{NextToken: time.Second, Full: 10 * time.Second})
	f.Advance(time.Second)
	f.takeCharges(true, inner, f.charge("outer", 1))
	if inner.Delay() != 3*time.Second {
		s.Errorf("delay %v, want 3s", inner.Delay())
	}
	inner.Cancel()
	inner.Cancel()
	if inner.Delay() != 0 {
		s.Errorf("delay %v after Cancel, want 0", inner.Delay())
	}
	f.granted("inner", 1, 0)
	f.refused("inner", 1, time.Second, 0)
}
