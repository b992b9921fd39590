package tbtest

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

var charges = []test{
	{"TakeAllTakesFromAllOrNone", takeAllTakesFromAllOrNone},
	{"TakeAllOfOneBucketTwice", takeAllOfOneBucketTwice},
	{"RefusedTakeAllChangesNothing", refusedTakeAllChangesNothing},
	{"RefusedTakeAllReturnsTheWait", refusedTakeAllReturnsTheWait},
	{"InertChargesTakeNothing", inertChargesTakeNothing},
	{"UndoGivesBackOnce", undoGivesBackOnce},
	{"UndoKeepsTheTime", undoKeepsTheTime},
	{"UndoGivesBackNoSupply", undoGivesBackNoSupply},
	{"UndoAfterEvictionChangesNothing", undoAfterEvictionChangesNothing},
	{"ConcurrentTakeAllGrantsFromBoth", concurrentTakeAllGrantsFromBoth},
}

// charge returns a charge of cost on key's bucket.
func (f *fixture) charge(key string, cost float64) tb.Charge {
	f.Helper()
	c, err := skipUnless[hasCharge](f).Charge(key, cost)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// take takes c. It fails the test unless c is granted.
func (f *fixture) take(c tb.Charge) {
	f.Helper()
	if d, err := c.Take(f.Now()); err != nil || !d.Allowed {
		f.Fatalf("Take = %+v, %v, want granted", d, err)
	}
}

// takeAll takes cost from all keys. It fails the test unless TakeAll returns allowed.
func (f *fixture) takeAll(allowed bool, cost float64, keys ...string) []tb.Decision {
	f.Helper()
	var cs []tb.Charge
	for _, key := range keys {
		cs = append(cs, f.charge(key, cost))
	}
	return f.takeCharges(allowed, cs...)
}

// takeCharges takes all charges. It fails the test unless TakeAll returns want.
func (f *fixture) takeCharges(want bool, cs ...tb.Charge) []tb.Decision {
	f.Helper()
	decisions, allowed, err := tb.TakeAll(f.Now(), cs, nil)
	all := true
	for _, d := range decisions {
		f.check(d, err)
		all = all && d.Allowed
	}
	if allowed != want || all != want {
		f.Fatalf("TakeAll = %t with %+v, want %t", allowed, decisions, want)
	}
	return decisions
}

func takeAllTakesFromAllOrNone(s *suite) {
	f := s.new(perSecond(10, 1))
	other := s.new(tb.Limit{Capacity: 5, Tokens: 1, Per: time.Hour})
	f.takeCharges(true, f.charge("a", 3), other.charge("a", 3), f.charge("b", 1.5))
	d := f.takeCharges(false, f.charge("a", 3), other.charge("a", 3), f.charge("b", 1))
	if want := (tb.Decision{RetryAfter: time.Hour, Remaining: 2}); d[1] != want {
		f.Errorf("the charge that refuses: %+v, want %+v", d[1], want)
	}
	if want := (tb.Decision{Allowed: true, Remaining: 4}); d[0] != want {
		f.Errorf("the charge before it: %+v, want %+v", d[0], want)
	}
	f.granted("a", 1, 6)
	f.granted("b", 1, 7)
	other.granted("a", 1, 1)
	d = f.takeAll(false, 10.5, "a", "b")
	if d[0] != refused(tb.Never, 6) || d[1] != refused(tb.Never, 7) {
		f.Errorf("charges above the capacity: %+v, want refused with Never", d)
	}
	if _, allowed, err := tb.TakeAll(f.Now(), nil, nil); !allowed || err != nil {
		f.Errorf("TakeAll without charges = %t, %v, want true", allowed, err)
	}
}

// Each of the two charges fits by itself, so Peek grants both and Take refuses the second.
func takeAllOfOneBucketTwice(s *suite) {
	f := s.new(perSecond(10, 1))
	f.takeAll(true, 3, "a", "a")
	d := f.takeAll(false, 3, "a", "a")
	if want := (tb.Decision{RetryAfter: 2 * time.Second, Remaining: 1}); d[1] != want {
		f.Errorf("the second charge: %+v, want %+v", d[1], want)
	}
	f.granted("a", 4, 0)
}

func refusedTakeAllChangesNothing(s *suite) {
	f := s.new(perSecond(10, 3))
	untouched := s.new(perSecond(10, 3)) // gets no TakeAll
	for _, g := range []*fixture{f, untouched} {
		g.granted("a", 7, 3)
		g.granted("b", 9, 1)
	}
	for i := range 50 {
		f.Advance(7 * time.Millisecond)
		untouched.Advance(7 * time.Millisecond)
		f.takeAll(false, 5, "c", "b", "a")
		f.takeAll(false, 3, "a", "a", "b")
		for _, key := range []string{"a", "b"} {
			if got, want := f.allowN(key, 10-i%2), untouched.allowN(key, 10-i%2); got != want {
				f.Fatalf("key %s: %+v, want %+v", key, got, want)
			}
		}
	}
	f.hasKeys(2)
}

// The call has to wait for the longest RetryAfter of its charges.
func refusedTakeAllReturnsTheWait(s *suite) {
	f := s.new(perSecond(10, 3))
	f.granted("a", 7, 3)
	f.granted("b", 9, 1)
	d := f.takeAll(false, 5, "a", "b", "c")
	if d[0].RetryAfter >= d[1].RetryAfter || d[2].RetryAfter != 0 {
		f.Fatalf("%+v, want the longest RetryAfter from b", d)
	}
	f.Set(d[1].RetryAfter - 1)
	f.takeAll(false, 5, "a", "b", "c")
	f.Set(d[1].RetryAfter)
	f.takeAll(true, 5, "a", "b", "c")
}

// A charge with an invalid argument returns its error from each call, as often as it is called.
func inertChargesTakeNothing(s *suite) {
	f := s.new(perSecond(10, 1))
	l := skipUnless[hasCharge](f)
	f.granted("a", 6, 4)
	for _, cost := range []float64{0, -5, -1e-300, math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, key := range []string{"a", "new"} {
			c, err := l.Charge(key, cost)
			if !errors.Is(err, tb.ErrInvalidCost) {
				f.Errorf("Charge(%v): %v, want ErrInvalidCost", cost, err)
			}
			f.isInert(c, err)
		}
	}
}

// isInert fails the test unless every call of c returns err, an error, and takes nothing.
func (f *fixture) isInert(c tb.Charge, err error) {
	f.Helper()
	left := f.remaining("a")
	for range 3 {
		_, peeked := c.Peek(f.Now())
		_, took := c.Take(f.Now())
		_, _, alone := tb.TakeAll(f.Now(), []tb.Charge{c}, nil)
		_, _, last := tb.TakeAll(f.Now(), []tb.Charge{f.charge("a", 1), c}, nil)
		_, _, first := tb.TakeAll(f.Now(), []tb.Charge{c, f.charge("a", 1)}, nil)
		for _, got := range []error{peeked, took, alone, last, first} {
			if err == nil || !errors.Is(got, err) {
				f.Fatalf("a call of an inert charge: %v, want its error, %v", got, err)
			}
		}
		c.Cancel()
		if c, ok := c.(waitingCharge); ok {
			c.MayWait(tb.Never)
			if err := c.Settle(1); err != nil || c.Delay() != 0 {
				f.Fatalf("an inert charge: Settle = %v, a delay of %v", err, c.Delay())
			}
		}
	}
	if got := f.remaining("a"); got != left {
		f.Fatalf("%d tokens after calls of an inert charge, want %d", got, left)
	}
	f.hasKeys(1)
}

func undoGivesBackOnce(s *suite) {
	f := s.new(perSecond(10, 1))
	f.granted("a", 4, 6)
	c := f.charge("a", 2.5)
	c.Cancel() // before any Take
	for range 3 {
		f.takes(c, granted(3))
		c.Cancel()
		c.Cancel()
	}
	f.takes(c, granted(3))
	f.granted("a", 3, 0)
	f.takes(c, refused(2*time.Second, 0))
	c.Cancel() // the last Take was refused
	f.refused("a", 1, time.Second/2, 0)
}

// The reading of a Take moves the bucket's time, and Cancel does not move it back.
func undoKeepsTheTime(s *suite) {
	f := s.new(perSecond(10, 1))
	f.granted("a", 10, 0)
	f.Advance(5 * time.Second)
	c := f.charge("a", 2)
	f.take(c)
	c.Cancel()
	f.Set(time.Second)
	f.granted("a", 5, 0)
	f.Set(5 * time.Second)
	f.refused("a", 1, time.Second, 0)
}

// Without the charge, a bucket that was full would have lost some supply, which Cancel does not
// give back. After a later grant, Cancel may give back less: by what was supplied until then, at
// most.
func undoGivesBackNoSupply(s *suite) {
	for _, tt := range []struct {
		spent, later int
		least, most  int // of 20 tokens, after a charge of 4, a later grant of 1, and Cancel
	}{
		{0, 0, 19, 19}, {0, 1, 19, 19}, {0, 3, 19, 19}, {0, 4, 19, 19}, {0, 3600, 19, 19},
		{10, 0, 9, 9}, {10, 1, 9, 10}, {10, 3, 9, 12},
	} {
		f := s.new(perSecond(20, 1))
		if tt.spent > 0 {
			f.granted("a", tt.spent, 20-tt.spent)
		}
		c := f.charge("a", 4)
		f.take(c)
		f.Advance(time.Duration(tt.later) * time.Second)
		f.allow("a")
		c.Cancel()
		n := f.remaining("a")
		if n < tt.least || n > tt.most {
			f.Errorf("%+v: %d tokens are left", tt, n)
		}
		f.granted("a", n, 0)
		f.refused("a", 1, time.Second, 0)
	}
}

// A charge is given back, or a reservation that has put the bucket into debt.
func undoAfterEvictionChangesNothing(s *suite) {
	charge := func(f *fixture) interface{ Cancel() } {
		c := f.charge("a", 4)
		f.take(c)
		return c
	}
	reservation := func(f *fixture) interface{ Cancel() } {
		f.granted("a", 10, 0)
		return f.reserved("a", 4, 4*time.Second)
	}
	for _, comesBack := range []bool{false, true} {
		for _, take := range []func(*fixture) interface{ Cancel() }{charge, reservation} {
			f := s.new(perSecond(10, 1), tb.WithMaxKeys(1))
			skipUnless[hasLen](f)
			taken := take(f)
			f.granted("b", 1, 9)
			if comesBack {
				f.granted("a", 6, 4)
			}
			taken.Cancel()
			f.hasKeys(1)
			if comesBack {
				f.refused("a", 5, time.Second, 4)
			} else {
				f.granted("b", 9, 0)
			}
		}
	}
}

// The callers compete for two keys, in either order. The clock stands still, so in the end the
// tokens that were not granted are left.
func concurrentTakeAllGrantsFromBoth(s *suite) {
	const callers, calls = 8, 2000
	f := s.new(tb.Limit{Capacity: 5000, Tokens: 1, Per: time.Hour})
	l := skipUnless[hasCharge](f)
	f.granted("b", 1000, 4000)
	var granted, alone atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			keys := [][]string{{"a", "b"}, {"b", "a"}}[i%2]
			for range calls {
				var cs [2]tb.Charge
				for j, key := range keys {
					cs[j], _ = l.Charge(key, 1)
				}
				if _, allowed, _ := tb.TakeAll(f.Now(), cs[:], nil); allowed {
					granted.Add(1)
				}
				if d, _ := f.AllowN(context.Background(), "b", 1); d.Allowed {
					alone.Add(1)
				}
			}
		})
	}
	wg.Wait()
	n, m := int(granted.Load()), int(alone.Load())
	if n+m != 4000 {
		f.Errorf("%d and %d tokens granted, want 4000 in all", n, m)
	}
	f.granted("a", 5000-n, 0)
}
