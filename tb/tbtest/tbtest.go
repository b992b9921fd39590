// Package tbtest checks an implementation of tb.Limiter against the contract of
// package tb.
package tbtest

import (
	"context"
	"math/big"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Run runs the suite on limiters that newLimiter makes. The options that it passes
// are tb.WithClock, tb.WithMaxKeys and tb.WithOverflow; an implementation gets their
// meaning from tb.Apply.
//
// The tests of what tb.Limiter does not have, such as Peek, run if the limiter has a
// method of that name and the signature it has in tb/cas, and are skipped otherwise;
// Charge is to return a tb.Charge. A limiter without Len is taken to have no table: its
// bound and eviction are not tested.
func Run(t *testing.T, newLimiter func(tb.Limit, ...tb.Option) (tb.Limiter, error)) {
	for _, tt := range slices.Concat(basics, costs, times, charges, levels) {
		t.Run(tt.name, func(t *testing.T) { tt.run(&suite{t, newLimiter}) })
	}
	for _, tt := range slices.Concat(tables, keys) {
		t.Run(tt.name, func(t *testing.T) {
			s := &suite{t, newLimiter}
			as[counter](s.new(perSecond(1, 1)))
			tt.run(s)
		})
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

// clock is a clock that stands still until it is moved.
type clock struct{ ns atomic.Int64 }

func (c *clock) Now() time.Time          { return start.Add(time.Duration(c.ns.Load())) }
func (c *clock) Advance(d time.Duration) { c.ns.Add(int64(d)) }
func (c *clock) Set(d time.Duration)     { c.ns.Store(int64(d)) }

// start is the reading of a clock that was not moved: an odd one, so that nothing
// divides it by chance.
var start = time.Date(2015, 5, 17, 10, 5, 3, 123456789, time.UTC)

// fixture is a limiter with a clock of its own.
type fixture struct {
	*suite
	clock
	tb.Limiter
	limit tb.Limit
}

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
	d, err := f.AllowN(context.Background(), key, n)
	f.check(d, err)
	return d
}

// check fails the test on what no decision may be.
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

// granted and refused take n tokens of key and fail the test if the answer is another.
func (f *fixture) granted(key string, n, remaining int) {
	f.Helper()
	if d := f.allowN(key, n); !d.Allowed || d.Remaining != remaining {
		f.Fatalf("AllowN(%q, %d) = %+v, want granted with %d remaining", key, n, d, remaining)
	}
}

func (f *fixture) refused(key string, n int, retry time.Duration, remaining int) {
	f.Helper()
	if d := f.allowN(key, n); d.Allowed || d.RetryAfter != retry || d.Remaining != remaining {
		f.Fatalf("AllowN(%q, %d) = %+v, want refused for %v with %d remaining",
			key, n, d, retry, remaining)
	}
}

// as returns the limiter as a T, or skips the test if it is none.
func as[T any](f *fixture) T {
	f.Helper()
	l, ok := f.Limiter.(T)
	if !ok {
		f.Skipf("the limiter has no such method: %T is no %T", f.Limiter, (*T)(nil))
	}
	return l
}

// quantum is the coarsest resolution that the contract allows, in tokens.
func quantum(limit tb.Limit) *big.Rat {
	q := big.NewRat(1, 1_000_000)
	if c := big.NewRat(int64(limit.Capacity), 1<<23); c.Cmp(q) > 0 {
		q = c
	}
	return q
}

// bound is the most that C1 lets a key be granted in d, in tokens.
func bound(limit tb.Limit, d time.Duration) *big.Rat {
	r := big.NewRat(limit.Tokens, int64(limit.Per))
	r.Mul(r, big.NewRat(int64(d), 1))
	r.Add(r, big.NewRat(int64(limit.Capacity), 1))
	return r.Add(r, quantum(limit))
}

// atMost fails the test if more tokens were granted in d than C1 allows.
func (f *fixture) atMost(granted int, d time.Duration) {
	f.Helper()
	if b := bound(f.limit, d); big.NewRat(int64(granted), 1).Cmp(b) > 0 {
		f.Fatalf("C1: %d tokens granted in %v, want at most %s", granted, d, b.FloatString(6))
	}
}

func perSecond(capacity int, tokens int64) tb.Limit {
	return tb.Limit{Capacity: capacity, Tokens: tokens, Per: time.Second}
}
