package tbtest

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var keeping = []test{
	{"KeepLeavesTokens", keepLeavesTokens},
	{"KeepAboveTheCapacity", keepAboveTheCapacity},
	{"KeepInTakeAll", keepInTakeAll},
	{"KeepInDebt", keepInDebt},
	{"KeepAndLateReadings", keepAndLateReadings},
	{"KeepAndSetLimit", keepAndSetLimit},
	{"KeepIsNotCharged", keepIsNotCharged},
	{"KeepIsLessInALevel", keepIsLessInALevel},
	{"KeepUnderRefuseNew", keepUnderRefuseNew},
}

// keepingCharge is a charge that can keep tokens in its bucket.
type keepingCharge interface {
	tb.Charge
	Keep(tokens float64)
}

// keeping returns a charge of the key a that keeps tokens.
func (f *fixture) keeping(cost, tokens float64) keepingCharge {
	f.Helper()
	c := chargeAs[keepingCharge](f, "a", cost)
	c.Keep(tokens)
	return c
}

// takes takes c. It fails the test unless Take, and Peek before it, return want.
func (f *fixture) takes(c tb.Charge, want tb.Decision) {
	f.Helper()
	peeked, err := c.Peek(f.Now())
	f.check(peeked, err)
	d, err := c.Take(f.Now())
	f.check(d, err)
	if peeked != want || d != want {
		f.Fatalf("at %v: Peek = %+v, Take = %+v, want %+v", f.Now().Sub(start), peeked, d, want)
	}
}

func granted(remaining int) tb.Decision { return tb.Decision{Allowed: true, Remaining: remaining} }

func refused(retry time.Duration, remaining int) tb.Decision {
	return tb.Decision{RetryAfter: retry, Remaining: remaining}
}

// A crawler that keeps 5 tokens is refused while others still pass.
func keepLeavesTokens(s *suite) {
	f := s.new(perSecond(10, 2))
	c := f.keeping(1.5, 5)
	f.takes(c, granted(3)) // of a bucket that is full
	f.takes(c, granted(2))
	f.takes(c, granted(0))
	for range 3 {
		f.takes(c, refused(time.Second/2, 0))
	}
	f.Advance(time.Second/2 - 1)
	f.takes(c, refused(1, 1))
	f.Advance(1)
	f.takes(c, granted(0))
	f.granted("a", 5, 0)
	f.takes(c, refused(6500*time.Millisecond/2, 0))
	f.takes(f.keeping(1.5, 0), refused(1500*time.Millisecond/2, 0))
	f.Advance(6500*time.Millisecond/2 - 1)
	f.takes(c, refused(1, 1))
	f.Advance(1)
	f.takes(c, granted(0))
}

func keepAboveTheCapacity(s *suite) {
	f := s.new(perSecond(10, 1))
	for _, tt := range []struct {
		cost, keep float64
		left       int
	}{
		{1, 9.5, 0}, {10, 0.1, 9}, {1, 10, 0}, {1, 1e300, 0}, {11, 0, 10}, {11, 1, 9}, {1e300, 1e300, 0},
	} {
		f.takes(f.keeping(tt.cost, tt.keep), refused(tb.Never, tt.left))
	}
	f.takes(f.keeping(1, 9), granted(0))
	f.takes(f.keeping(1, 9), refused(time.Second, 0))
	f.takes(f.keeping(1, 9.1), refused(tb.Never, 0))
	f.Advance(time.Second)
	f.takes(f.keeping(9, 1), granted(0))
	f.granted("a", 1, 0)
}

// The class of a client is demoted, and not refused: the tenant has tokens, the host keeps them.
func keepInTakeAll(s *suite) {
	f := s.new(perSecond(10, 1))
	f.granted("a", 4, 6)
	keeps := f.keeping(1, 5)
	if d := f.takeCharges(true, f.charge("b", 4), keeps); d[1].Remaining != 0 {
		s.Errorf("%+v, want 0 remaining", d)
	}
	d := f.takeCharges(false, f.charge("b", 4), keeps)
	if d[0] != granted(2) || d[1] != refused(time.Second, 0) {
		s.Errorf("%+v, want one refused for 1s", d)
	}
	f.granted("b", 6, 0)
	f.granted("a", 5, 0)
}

func keepInDebt(s *suite) {
	f := s.new(perSecond(10, 1))
	f.granted("a", 10, 0)
	f.reserved("a", 3, 3*time.Second)
	c := f.keeping(1, 5)
	f.takes(c, refused(9*time.Second, 0))
	f.Advance(9*time.Second - 1)
	f.takes(c, refused(1, 0))
	f.Advance(1)
	f.takes(c, granted(0))
	f.granted("a", 5, 0)
}

// A late charge is decided on the bucket as it stands, and changes the time of the bucket in no
// way.
func keepAndLateReadings(s *suite) {
	f := s.new(perSecond(10, 1))
	f.Set(10 * time.Second)
	f.granted("a", 3, 7)
	f.Set(4 * time.Second)
	f.takes(f.keeping(2, 6), refused(7*time.Second, 1))
	f.takes(f.keeping(2, 4), granted(1))
	f.takes(f.keeping(2, 4), refused(7*time.Second, 1))
	f.Set(11 * time.Second)
	f.takes(f.keeping(2, 4), granted(0))
}

func keepAndSetLimit(s *suite) {
	f := s.new(perSecond(10, 1))
	f.granted("a", 2, 8)
	c := f.keeping(1, 5)
	f.setLimit(perSecond(5, 2)) // to a capacity below cost and k
	f.takes(c, refused(tb.Never, 0))
	f.setLimit(perSecond(20, 2))
	f.takes(c, refused(time.Second/2, 0))
	f.Advance(time.Second / 2)
	f.takes(c, granted(0))
	f.granted("a", 5, 0)
}

// Cancel and Settle of a charge that keeps tokens are those of any charge.
func keepIsNotCharged(s *suite) {
	f := s.new(perSecond(10, 1))
	c := f.keeping(3, 4)
	f.takes(c, granted(3))
	c.Cancel()
	f.takes(c, granted(3))
	f.granted("b", 3, 7)
	if c, ok := tb.Charge(c).(waitingCharge); ok {
		f.settle(c, 5)
		f.granted("a", 5, 0)
		f.refused("a", 1, time.Second, 0)
	}
}

func keepIsLessInALevel(s *suite) {
	f := s.new(perSecond(10, 2))
	f.granted("b", 1, 9)
	check := func(keep float64, want tb.Level) {
		s.Helper()
		c := chargeAs[interface {
			keepingCharge
			Level(t time.Time) (tb.Level, error)
		}](f, "a", 1)
		c.Keep(keep)
		if l, err := c.Level(f.Now()); err != nil || l != want {
			s.Errorf("keeping %v: %+v, %v, want %+v", keep, l, err, want)
		}
	}
	check(2.5, tb.Level{Tokens: 7.5}) // of a new key
	check(11, tb.Level{})
	f.take(f.charge("a", 0.5))
	full := time.Second / 4
	check(0, tb.Level{Tokens: 9.5, NextToken: full, Full: full})
	check(2.5, tb.Level{Tokens: 7, NextToken: tb.Never, Full: full})
	check(2.75, tb.Level{Tokens: 6.75, NextToken: time.Second / 8, Full: full})
	check(9.5, tb.Level{NextToken: tb.Never, Full: full})
	f.granted("a", 7, 2)
	full += 7 * time.Second / 2
	check(3, tb.Level{NextToken: 1500 * time.Millisecond / 2, Full: full})
	check(1, tb.Level{Tokens: 1.5, NextToken: time.Second / 4, Full: full})
	f.reserved("a", 5.5, 3*time.Second/2)
	full += 5500 * time.Millisecond / 2
	check(0, tb.Level{Tokens: -3, NextToken: 2 * time.Second, Full: full})
	check(1, tb.Level{NextToken: 5 * time.Second / 2, Full: full})
	if left := f.remaining("a"); left != 0 {
		f.Errorf("%d tokens, want 0", left)
	}
}

// A new key that keeps more than it can is not refused for lack of room.
func keepUnderRefuseNew(s *suite) {
	f := s.new(perSecond(10, 1), tb.WithMaxKeys(1), tb.WithOverflow(tb.RefuseNew))
	skipUnless[hasLen](f)
	if _, err := f.AllowN(context.Background(), "b", 2); err != nil {
		f.Fatal(err)
	}
	f.takes(f.keeping(1, 10), refused(tb.Never, 0))
	f.takes(f.keeping(1, 9), refused(2*time.Second, 0))
	f.Advance(2 * time.Second)
	f.takes(f.keeping(1, 9), granted(0))
	f.hasKeys(1)
}
