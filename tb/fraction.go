package tb

import (
	"math"
	"math/bits"
	"time"
)

// fraction returns a rate in tokens a second as tokens per duration: the simplest fraction in
// seconds, or in nanoseconds if the one in seconds needs more than 292 years.
func fraction(rate float64) (tokens int64, per time.Duration) {
	num, den := simplest(rate, 1)
	if den <= math.MaxInt64/uint64(time.Second) {
		return int64(num), time.Duration(den) * time.Second
	}
	num, den = simplest(rate, uint64(time.Second))
	return int64(num), time.Duration(den)
}

// simplest returns the fraction with the smallest denominator whose product with unit rounds to f,
// which is in the range of LimitPerSecond.
func simplest(f float64, unit uint64) (num, den uint64) {
	part, exp := math.Frexp(f)
	digits := uint64(part * (1 << 53))
	// Halfway to the neighbours of f. The one below a power of two is nearer, but no fraction just
	// below a power of two has a smaller denominator.
	lo, hi := 4*digits-2, 4*digits+2
	// Both are over unit·2^(55-exp), which is at most 2¹¹⁸.
	shift := uint(55 - exp)
	overHi, over := bits.Mul64(unit, 1<<(shift&63))
	if shift > 63 {
		overHi, over = over, 0
	}
	// The inverses, which are below 2⁶⁴, fit where f/unit may not. The simplest fraction between them
	// is the inverse of the one that is wanted, whose numerator is the smallest, too.
	below, belowRest := bits.Div64(overHi, over, hi)
	above, aboveRest := bits.Div64(overHi, over, lo)
	den, num = between(mixed{below, belowRest, hi}, mixed{above, aboveRest, lo})
	return num, den
}

// mixed is the number whole + rest/over, rest < over.
type mixed struct{ whole, rest, over uint64 }

// inverse returns 1/(x-whole), where x is above whole and at most 1 above it.
func (x mixed) inverse(whole uint64) mixed {
	if x.whole > whole {
		return mixed{whole: 1, over: 1}
	}
	return mixed{x.over / x.rest, x.over % x.rest, x.rest}
}

// between returns the fraction with the smallest denominator strictly between lo and hi, lo < hi.
// It descends the continued fractions of lo and hi as long as they are the same. The first term in
// which they differ is the last one of the result.
func between(lo, hi mixed) (num, den uint64) {
	var before, beforeDen uint64 = 0, 1
	num, den = 1, 0
	add := func(term uint64) {
		num, before = term*num+before, num
		den, beforeDen = term*den+beforeDen, den
	}
	for {
		whole := lo.whole
		if next := whole + 1; hi.whole > next || hi.whole == next && hi.rest > 0 {
			add(next)
			return num, den
		}
		add(whole)
		if lo.rest == 0 { // only a fraction just above whole is left
			add(hi.inverse(whole).whole + 1)
			return num, den
		}
		lo, hi = hi.inverse(whole), lo.inverse(whole)
	}
}
