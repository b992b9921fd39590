package tb

import (
	"math"
	"math/big"
	"strconv"
	"time"
)

// MaxCapacity is the largest capacity of a bucket, in tokens.
const MaxCapacity = 1 << 30

// Limit is a burst of Capacity tokens, refilled continuously at Tokens every Per. The rate stays
// an exact fraction: {10, 3, time.Second} refills exactly three tokens a second.
type Limit struct {
	Capacity int           // 1 to MaxCapacity
	Tokens   int64         // at least 1, and at most one for each nanosecond of Per
	Per      time.Duration // at least 1 ns
}

// Validate returns a *ConfigError if the limit is out of range.
func (l Limit) Validate() error {
	switch {
	case l.Capacity < 1 || l.Capacity > MaxCapacity:
		return &ConfigError{"Capacity", l.Capacity, "1 to " + strconv.Itoa(MaxCapacity)}
	case l.Per < 1:
		return &ConfigError{"Per", l.Per, "at least 1ns"}
	case l.Tokens < 1 || l.Tokens > int64(l.Per):
		return &ConfigError{"Tokens", l.Tokens,
			"1 to " + strconv.FormatInt(int64(l.Per), 10) + " per " + l.Per.String() +
				" (at most one a nanosecond)"}
	}
	return nil
}

// LimitPerSecond returns the limit with the given burst and refill rate in tokens a second. The
// rate becomes the simplest fraction that rounds to that float64: 0.1 is one token in ten
// seconds, 1.0/86400 is one a day. It returns a *ConfigError if the capacity is not 1 to
// MaxCapacity, or the rate is not from one token in 292 years to 10⁹ tokens a second.
func LimitPerSecond(capacity int, refillPerSec float64) (Limit, error) {
	const slowest = float64(time.Second) / math.MaxInt64
	if !(refillPerSec >= slowest && refillPerSec <= 1e9) { // NaN fails both
		return Limit{}, &ConfigError{"refillPerSec", refillPerSec,
			"one token in 292 years (1.0843e-10 a second) to 1e+09 tokens a second"}
	}
	tokens, per := fraction(refillPerSec)
	l := Limit{Capacity: capacity, Tokens: tokens, Per: per}
	return l, l.Validate()
}

// fraction returns a rate in tokens a second as tokens per duration: the simplest fraction in
// seconds, or in nanoseconds if the one in seconds needs more than 292 years.
func fraction(rate float64) (tokens int64, per time.Duration) {
	second := big.NewRat(int64(time.Second), 1)
	r := simplest(rate, big.NewRat(1, 1))
	ns := new(big.Int).Mul(r.Denom(), second.Num())
	if !ns.IsInt64() {
		r = simplest(rate, second)
		ns = r.Denom()
	}
	return r.Num().Int64(), time.Duration(ns.Int64())
}

// simplest returns the fraction with the smallest denominator whose product with unit rounds to
// f.
func simplest(f float64, unit *big.Rat) *big.Rat {
	edge := func(neighbour float64) *big.Rat { // halfway to the neighbour
		r := new(big.Rat).SetFloat64(f)
		r.Add(r, new(big.Rat).SetFloat64(neighbour))
		return r.Quo(r, new(big.Rat).Mul(unit, big.NewRat(2, 1)))
	}
	lo, hi := edge(math.Nextafter(f, 0)), edge(math.Nextafter(f, math.Inf(1)))
	return between(lo, hi)
}

// between returns the fraction with the smallest denominator strictly between lo and hi, 0 ≤ lo <
// hi. It descends the continued fractions of lo and hi: it subtracts the whole part that both
// share, solves for the reciprocals of the rests, and inverts the result.
func between(lo, hi *big.Rat) *big.Rat {
	whole := new(big.Int).Quo(lo.Num(), lo.Denom())
	next := new(big.Rat).SetInt(new(big.Int).Add(whole, big.NewInt(1)))
	if next.Cmp(hi) < 0 {
		return next
	}
	floor := new(big.Rat).SetInt(whole)
	low, high := new(big.Rat).Sub(lo, floor), new(big.Rat).Sub(hi, floor)
	if low.Sign() == 0 { // only a fraction just above whole is left
		n := new(big.Int).Quo(high.Denom(), high.Num())
		return floor.Add(floor, new(big.Rat).SetFrac(big.NewInt(1), n.Add(n, big.NewInt(1))))
	}
	rest := between(high.Inv(high), low.Inv(low))
	return floor.Add(floor, rest.Inv(rest))
}
