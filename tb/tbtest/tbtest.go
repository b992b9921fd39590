// Package tbtest checks implementations of tb.Limiter against the contract of package tb.
//
// To check a limiter, call Run in a test:
//
//	func TestContract(t *testing.T) {
//		tbtest.Run(t, func(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
//			if err := limit.Validate(); err != nil {
//				return nil, err
//			}
//			s, err := tb.Apply(opts...)
//			if err != nil {
//				return nil, err
//			}
//			return mylimiter.New(limit, s.Now, s.MaxKeys, s.Overflow), nil
//		})
//	}
//
// Run tests the methods of tb.Limiter, and others if the limiter has them. If the signature of
// such a method differs, wrap the limiter. For example, Charge must return the interface
// tb.Charge:
//
//	type limiter struct{ *mylimiter.Limiter }
//
//	func (l limiter) Charge(key string, cost float64) (tb.Charge, error) {
//		return l.Limiter.Charge(key, cost)
//	}
//
// [RunGeneric] checks an implementation that is generic in the type of its keys, [RunKeys] limiters
// with keys of one type, and [RunConstructor] a constructor that panics.
package tbtest

import (
	"context"
	"math/big"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/ideal"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Run runs the suite on limiters that newLimiter makes. newLimiter gets the options
// tb.WithClock, tb.WithMaxKeys and tb.WithOverflow, and should apply them with tb.Apply. A
// limit or an option that is out of range must be a *tb.ConfigError. Several goroutines call
// a limiter at the same time.
//
// Run also tests AllowAt, Charge, Reserve, Wait, SetLimit, Limit, Hold, Peek, Level, Reset,
// Len and Stats, each if the limiter has it with the signature that it has in tb/cas for string
// keys. Charge is the exception: it must return a tb.Charge. Run tests MayWait, Delay, Settle,
// Keep and HoldOnRefusal of a charge if it has them. The tests of a method that the limiter lacks
// are skipped. Without Len, Run also skips the tests of the bound, of eviction and of copied keys.
func Run(t *testing.T, newLimiter func(tb.Limit, ...tb.Option) (tb.Limiter, error)) {
	RunExcept(t, newLimiter, nil)
}

// RunExcept runs the suite without the tests that do not apply to a limiter. reasons has the name
// of each such test, and why it does not apply. The test is skipped with that reason.
func RunExcept(
	t *testing.T, newLimiter func(tb.Limit, ...tb.Option) (tb.Limiter, error),
	reasons map[string]string,
) {
	names := make(map[string]bool)
	run := func(tt test, needsLen bool) {
		names[tt.name] = true
		t.Run(tt.name, func(t *testing.T) {
			if reason, ok := reasons[tt.name]; ok {
				t.Skip(reason)
			}
			s := &suite{t, newLimiter}
			if needsLen {
				skipUnless[hasLen](s.new(perSecond(1, 1)))
			}
			tt.run(s)
		})
	}
	for _, tt := range slices.Concat(
		basics, costs, times, charges, keeping, levels, reservations, cancellations, waits, settlements,
		changes, holds,
	) {
		run(tt, false)
	}
	for _, tt := range slices.Concat(tables, keys, holdsInTables) {
		run(tt, true)
	}
	for name := range reasons {
		if !names[name] {
			t.Errorf("the suite has no test %s", name)
		}
	}
}

type test struct {
	name string
	run  func(*suite)
}

type suite struct {
	*testing.T
	newLimiter func(tb.Limit, ...tb.Option) (tb.Limiter, error)
}

// clock is a clock that stands still until Advance or Set moves it. Set takes the time since
// start.
type clock struct{ ns atomic.Int64 }

func (c *clock) Now() time.Time          { return start.Add(time.Duration(c.ns.Load())) }
func (c *clock) Advance(d time.Duration) { c.ns.Add(int64(d)) }
func (c *clock) Set(d time.Duration)     { c.ns.Store(int64(d)) }

// start is the first reading of a clock. It is an odd number of nanoseconds, so that no period
// divides it by chance.
var start = time.Date(2015, 5, 17, 10, 5, 3, 123456789, time.UTC)

// fixture is a limiter and its clock. Its methods make a call and fail the test if the answer
// is not as expected.
type fixture struct {
	*suite
	clock
	tb.Limiter
	limit tb.Limit
}

// new makes a limiter. It fails the test if that is an error.
func (s *suite) new(limit tb.Limit, opts ...tb.Option) *fixture {
	s.Helper()
	f := &fixture{suite: s, limit: limit}
	l, err := s.newLimiter(limit, append([]tb.Option{tb.WithClock(f.Now)}, opts...)...)
	if err != nil {
		s.Fatalf("limit %+v: %v", limit, err)
	}
	f.Limiter = l
	return f
}

// allow takes one token of key.
func (f *fixture) allow(key string) tb.Decision { return f.allowN(key, 1) }

func (f *fixture) allowN(key string, n int) tb.Decision {
	f.Helper()
	d, err := f.AllowN(context.Background(), key, float64(n))
	f.check(d, err)
	return d
}

// check fails the test if no call may return d.
func (f *fixture) check(d tb.Decision, err error) {
	f.Helper()
	switch {
	case err != nil:
		f.Fatalf("unexpected error: %v", err)
	case d.Allowed && d.RetryAfter != 0:
		f.Fatalf("granted with RetryAfter %v, want 0", d.RetryAfter)
	case !d.Allowed && d.RetryAfter <= 0:
		f.Fatalf("refused with RetryAfter %v, want more than 0", d.RetryAfter)
	case d.Remaining < 0 || d.Remaining > f.limit.Capacity:
		f.Fatalf("Remaining %d, want 0 to %d", d.Remaining, f.limit.Capacity)
	}
}

// granted takes n tokens of key. It fails the test unless they are granted and the given
// number of tokens is left.
func (f *fixture) granted(key string, n, remaining int) {
	f.Helper()
	if d := f.allowN(key, n); !d.Allowed || d.Remaining != remaining {
		f.Fatalf("AllowN(%q, %d) = %+v, want granted with %d remaining", key, n, d, remaining)
	}
}

// grantedAt takes n tokens of key at a reading, by AllowAt. It fails the test unless they are
// granted.
func (f *fixture) grantedAt(t time.Time, key string, n int) {
	f.Helper()
	d, err := skipUnless[hasAllowAt](f).AllowAt(t, key, float64(n))
	if f.check(d, err); !d.Allowed {
		f.Fatalf("AllowAt(%v, %q, %d) = %+v, want granted", t, key, n, d)
	}
}

// refused asks for n tokens of key. It fails the test unless they are refused with the given
// RetryAfter and the given number of tokens is left.
func (f *fixture) refused(key string, n int, retry time.Duration, remaining int) {
	f.Helper()
	if d := f.allowN(key, n); d.Allowed || d.RetryAfter != retry || d.Remaining != remaining {
		f.Fatalf("AllowN(%q, %d) = %+v, want refused for %v with %d remaining",
			key, n, d, retry, remaining)
	}
}

// bound is the most tokens that C1 grants a key in d.
func bound(limit tb.Limit, d time.Duration) *big.Rat {
	r := multiple(int64(d), ideal.Rate(limit))
	return r.Add(r, tokens(limit.Capacity)).Add(r, ideal.Quantum(limit))
}

func tokens(n int) *big.Rat { return big.NewRat(int64(n), 1) }

func multiple(n int64, r *big.Rat) *big.Rat { return new(big.Rat).Mul(r, big.NewRat(n, 1)) }

// atMost fails the test if more tokens were granted in d than C1 allows.
func (f *fixture) atMost(granted int, d time.Duration) {
	f.Helper()
	if b := bound(f.limit, d); tokens(granted).Cmp(b) > 0 {
		f.Fatalf("C1: %d tokens granted in %v, want at most %s", granted, d, b.FloatString(6))
	}
}

func perSecond(capacity int, tokens int64) tb.Limit {
	return tb.Limit{Capacity: capacity, Tokens: tokens, Per: time.Second}
}
