package tbtest

import (
	"math"
	"math/big"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// ideal is the continuous bucket of the contract, in exact fractions. Its tokens are negative in
// debt.
type ideal struct {
	limit  tb.Limit
	tokens *big.Rat
	at     time.Duration // since start
}

func newIdeal(limit tb.Limit) *ideal {
	return &ideal{limit: limit, tokens: big.NewRat(int64(limit.Capacity), 1)}
}

// to refills the bucket up to t.
func (b *ideal) to(t time.Duration) {
	b.tokens.Add(b.tokens, supplied(b.limit, t-b.at))
	b.at = t
	b.cut()
}

// put adds tokens, which may be negative.
func (b *ideal) put(tokens *big.Rat) {
	b.tokens.Add(b.tokens, tokens)
	b.cut()
}

func (b *ideal) take(n int) { b.put(big.NewRat(-int64(n), 1)) }

// change changes the limit at the time of the bucket.
func (b *ideal) change(limit tb.Limit) {
	b.limit = limit
	b.cut()
}

func (b *ideal) cut() {
	if c := big.NewRat(int64(b.limit.Capacity), 1); b.tokens.Cmp(c) > 0 {
		b.tokens.Set(c)
	}
}

// supplied returns the tokens that the rate supplies in d.
func supplied(limit tb.Limit, d time.Duration) *big.Rat {
	r := big.NewRat(limit.Tokens, int64(limit.Per))
	return r.Mul(r, big.NewRat(int64(d), 1))
}

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
