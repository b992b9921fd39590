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

// grant is a grant of tokens and the time at which C1 counts it. A slot is not a whole number of
// nanoseconds, and the time is rounded up.
type grant struct {
	at        time.Duration
	n         int
	slot      bool
	cancelled bool
}

// checkGrants fails the test if more tokens were granted in an interval than C1 allows. The grants
// must be in the order of their times.
func (f *fixture) checkGrants(grants []grant) {
	f.Helper()
	for i, first := range grants {
		sum := 0
		from := first.at
		if first.slot {
			from--
		}
		for _, g := range grants[i:] {
			sum += g.n
			f.atMost(sum, g.at-from)
		}
	}
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
