package tbtest

import (
	"math"
	"math/big"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// timeFor returns the time in which the rate supplies a number of tokens, rounded up to a
// nanosecond, or tb.Never.
func timeFor[N int | int64](limit tb.Limit, tokens N) time.Duration {
	ns := new(big.Int).Mul(big.NewInt(int64(tokens)), big.NewInt(int64(limit.Per)))
	ns.Add(ns, big.NewInt(limit.Tokens-1)).Quo(ns, big.NewInt(limit.Tokens))
	if !ns.IsInt64() {
		return tb.Never
	}
	return time.Duration(ns.Int64())
}

// grant is a grant of n tokens that C1 counts between two times: the latest readings before and
// after the call, or a slot, which is not a whole number of nanoseconds.
type grant struct {
	before, after time.Duration
	n             int
	cancelled     bool
}

// checkBound fails the test if more tokens were granted in an interval than C1 allows. The grants
// must be in the order of their times.
func (f *fixture) checkBound(grants []grant) {
	f.Helper()
	for i, first := range grants {
		granted := 0
		for _, g := range grants[i:] {
			granted += g.n
			f.atMost(granted, g.after-first.before)
		}
	}
}

// exactAfter fails the test unless call, which asks for n tokens, is granted after wait, and is
// refused a nanosecond earlier, when the bucket has n-1 whole tokens.
func (f *fixture) exactAfter(wait time.Duration, n int, call func() tb.Decision) {
	f.Helper()
	f.Advance(wait - 1)
	if d := call(); d != refused(1, n-1) {
		f.Fatalf("limit %+v: %d tokens 1 ns before %v: %+v, want refused for 1ns", f.limit, n, wait, d)
	}
	f.Advance(1)
	if d := call(); !d.Allowed {
		f.Fatalf("limit %+v: %d tokens after %v: %+v, want granted", f.limit, n, wait, d)
	}
}

// grantedAfter is exactAfter for tokens of key, which are taken.
func (f *fixture) grantedAfter(wait time.Duration, key string, n int) {
	f.Helper()
	f.exactAfter(wait, n, func() tb.Decision { return f.allowN(key, n) })
}

// levelOf returns the tokens in the bucket of the key a.
func (f *fixture) levelOf() *big.Rat {
	f.Helper()
	level, err := skipUnless[hasLevel](f).Level(f.Context(), "a")
	if err != nil || math.IsNaN(level.Tokens) || math.IsInf(level.Tokens, 0) {
		f.Fatalf("Level = %+v, %v", level, err)
	}
	return new(big.Rat).SetFloat64(level.Tokens)
}

// levelBetween fails the test unless the bucket of the key a has from least to most tokens, with
// the given slack on both sides.
func (f *fixture) levelBetween(least, most, slack *big.Rat) {
	f.Helper()
	got := f.levelOf()
	low, high := new(big.Rat).Sub(least, slack), new(big.Rat).Add(most, slack)
	if got.Cmp(low) < 0 || got.Cmp(high) > 0 {
		f.Fatalf("limit %+v at %v: %s tokens, want %s to %s",
			f.limit, time.Duration(f.ns.Load()), got.FloatString(9),
			low.FloatString(9), high.FloatString(9))
	}
}
