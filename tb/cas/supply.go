package cas

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/seed-181794aa/ratelimit/tb"
)

// supply is the clock S(t) = ⌊t·tokens·scale/per⌋: how many units the rate has
// supplied in the first t nanoseconds. It is immutable.
type supply struct {
	rate    ratio // units per nanosecond, at most 10⁶
	inverse ratio // nanoseconds per unit
}

func newSupply(l tb.Limit, scale uint64) supply {
	units := new(big.Int).SetUint64(scale)
	units.Mul(units, big.NewInt(l.Tokens))
	per := big.NewInt(int64(l.Per))
	return supply{newRatio(units, per), newRatio(per, units)}
}

// at returns S(t), which is below 2⁸⁴. It is exact: see ratio.
func (s *supply) at(t uint64) (hi, lo uint64) {
	hi, lo, _ = s.rate.times(t)
	return hi, lo
}

// reaches returns the first t at which S(t) ≥ x, and false if that is beyond 2⁶⁴.
//
// If the rate is below one unit a nanosecond, S(t) is below 2⁶⁴ and the first t is x
// times the nanoseconds per unit, rounded up, exactly. Otherwise x may be as large as
// 2⁸⁴, and so may the denominator of the nanoseconds per unit. The product is then too
// large by up to 2⁻⁴⁴, so the first t is its whole part or the next: S itself tells.
func (s *supply) reaches(xHi, xLo uint64) (t uint64, ok bool) {
	if s.rate.whole == 0 {
		over, t, fraction := s.inverse.times(xLo)
		ok = xHi|over == 0
		if fraction > 0 {
			return t + 1, ok && t < math.MaxUint64
		}
		return t, ok
	}
	t, ok = s.inverse.timesWide(xHi, xLo)
	if !ok {
		return 0, false
	}
	if hi, lo := s.at(t); hi > xHi || hi == xHi && lo >= xLo {
		return t, true
	}
	return t + 1, t < math.MaxUint64
}

// ratio is a positive fraction: whole + (hi·2⁶⁴ + lo)/2¹²⁸, where the second part is
// the true fractional part, rounded up.
//
// With a denominator d, x times ratio is too large by less than x/2¹²⁸, while the true
// product is an integer or lies at least 1/d from one. So for x < 2⁶⁴ and d ≤ 2⁶³ the
// whole part of the product is exact, and the product is an integer if and only if
// the first 64 bits of its fractional part are 0. (With a reciprocal of 64 bits the
// whole part could be off by one.)
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
	carryIn, _ := bits.Mul64(x, r.lo)
	fraction, carry := bits.Add64(fraction, carryIn, 0)
	lo, carry = bits.Add64(lo, part, carry)
	return hi + carry, lo, fraction
}

// timesWide returns the whole part of (xHi·2⁶⁴ + xLo) times r, and false if that is
// beyond 2⁶⁴. It is for xHi below 2³² and a ratio of at most 1, so that nothing else can
// overflow.
func (r *ratio) timesWide(xHi, xLo uint64) (product uint64, ok bool) {
	_, lo, fraction := r.times(xLo)
	over, middle := bits.Mul64(xHi, r.hi)
	middleHi, low := bits.Mul64(xHi, r.lo)
	_, carry := bits.Add64(fraction, low, 0)
	lo, carry1 := bits.Add64(lo, middle, carry)
	lo, carry2 := bits.Add64(lo, middleHi, 0)
	return lo, xHi*r.whole|over|carry1|carry2 == 0
}
