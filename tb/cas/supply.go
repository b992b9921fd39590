package cas

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/seed-181794aa/ratelimit/tb"
)

// supply is the clock S(t) = ⌊(t−from)·tokens·scale/per⌋, the number of units that have been
// supplied by instant t. Until from it shows 0. It is immutable. DESIGN.md §1 proves that it is
// exact.
type supply struct {
	rate    ratio // units per nanosecond, at most 10⁶
	inverse ratio // nanoseconds per unit
	from    uint64
}

func newSupply(l tb.Limit, scale uint64) supply {
	units := new(big.Int).SetUint64(scale)
	units.Mul(units, big.NewInt(l.Tokens))
	per := big.NewInt(int64(l.Per))
	return supply{rate: newRatio(units, per), inverse: newRatio(per, units)}
}

// unitsBy returns S(t).
func (s *supply) unitsBy(t uint64) (hi, lo uint64) {
	hi, lo, _ = s.rate.times(t - min(t, s.from))
	return hi, lo
}

// timeOf returns the first t ≥ from with S(t) ≥ x, and false if that t is 2⁶⁴ or more.
func (s *supply) timeOf(xHi, xLo uint64) (t uint64, ok bool) {
	d, ok := s.timeFor(xHi, xLo)
	t, carry := bits.Add64(s.from, d, 0)
	return t, ok && carry == 0
}

// timeFor returns the least time in which the rate supplies x units, and false if it is 2⁶⁴ ns or
// more.
//
// At rates below one unit a nanosecond, no x of 2⁶⁴ or more is ever supplied, and the product of
// x and the inverse shows that time exactly. At higher rates the product may be too large by up
// to 2⁻⁴⁴. Then the time is its whole part or the next nanosecond, and S decides.
func (s *supply) timeFor(xHi, xLo uint64) (d uint64, ok bool) {
	if s.rate.whole == 0 {
		over, d, fraction := s.inverse.times(xLo)
		ok = xHi|over == 0
		if fraction > 0 {
			return d + 1, ok && d < math.MaxUint64
		}
		return d, ok
	}
	d, ok = s.inverse.timesWide(xHi, xLo)
	if !ok {
		return 0, false
	}
	if hi, lo, _ := s.rate.times(d); hi > xHi || hi == xHi && lo >= xLo {
		return d, true
	}
	return d + 1, d < math.MaxUint64
}

// ratio is a positive fraction: whole + (hi·2⁶⁴ + lo)/2¹²⁸. Its fractional part is rounded up.
//
// For x < 2⁶⁴ and a denominator of at most 2⁶³, the whole part of x times ratio is exact, and
// the product is an integer if and only if the first 64 bits of its fractional part are 0.
type ratio struct {
	whole  uint64
	hi, lo uint64
}

func newRatio(num, den *big.Int) ratio {
	whole, rem := new(big.Int).QuoRem(num, den, new(big.Int))
	rem.Lsh(rem, 128).Add(rem, den).Sub(rem, big.NewInt(1)).Quo(rem, den)
	lo := new(big.Int).And(rem, new(big.Int).SetUint64(math.MaxUint64))
	return ratio{whole.Uint64(), rem.Rsh(rem, 64).Uint64(), lo.Uint64()}
}

// times returns the whole part of x times r as hi·2⁶⁴ + lo, and the first 64 bits of
// its fractional part.
func (r *ratio) times(x uint64) (hi, lo, fraction uint64) {
	hi, lo = bits.Mul64(x, r.whole)
	part, fraction := bits.Mul64(x, r.hi)
	lower, _ := bits.Mul64(x, r.lo)
	fraction, carry := bits.Add64(fraction, lower, 0)
	lo, carry = bits.Add64(lo, part, carry)
	return hi + carry, lo, fraction
}

// timesWide returns the whole part of (xHi·2⁶⁴ + xLo) times r, and false if it is 2⁶⁴ or more.
// xHi must be below 2³² and the ratio at most 1, so that no other sum or product overflows.
func (r *ratio) timesWide(xHi, xLo uint64) (product uint64, ok bool) {
	_, lo, fraction := r.times(xLo)
	over, middle := bits.Mul64(xHi, r.hi)
	middleHi, low := bits.Mul64(xHi, r.lo)
	_, carry := bits.Add64(fraction, low, 0)
	lo, carry1 := bits.Add64(lo, middle, carry)
	lo, carry2 := bits.Add64(lo, middleHi, 0)
	return lo, xHi*r.whole|over|carry1|carry2 == 0
}
