package cas

import (
	"math"
	"math/big"
	"math/bits"
	"time"

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

// at returns S(t).
func (s *supply) at(t uint64) wide {
	x, _ := s.rate.times(t - min(t, s.from))
	return x
}

// timeOf returns the first t ≥ from with S(t) ≥ x, and false if that t is 2⁶⁴ or more.
func (s *supply) timeOf(x wide) (t uint64, ok bool) {
	d, ok := s.timeFor(x)
	t, carry := bits.Add64(s.from, d, 0)
	return t, ok && carry == 0
}

// timeFor returns the least time in which the rate supplies x units, and false if it is 2⁶⁴ ns or
// more.
//
// At rates below one unit a nanosecond, no x of 2⁶⁴ or more is ever supplied, and the product of
// x and the inverse shows that time exactly. At higher rates the product may be too large by up
// to 2⁻⁴⁴. Then the time is its whole part or the next nanosecond, and S decides.
func (s *supply) timeFor(x wide) (d uint64, ok bool) {
	if s.rate.whole == 0 {
		whole, fraction := s.inverse.times(x.lo)
		if fraction > 0 {
			whole = whole.plus(1)
		}
		return whole.lo, x.hi|whole.hi == 0
	}
	d, ok = s.inverse.timesWide(x)
	if !ok {
		return 0, false
	}
	if y, _ := s.rate.times(d); !y.before(x) {
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

// times returns the whole part of x times r, and the first 64 bits of its fractional part.
func (r *ratio) times(x uint64) (whole wide, fraction uint64) {
	hi, lo := bits.Mul64(x, r.whole)
	part, fraction := bits.Mul64(x, r.hi)
	lower, _ := bits.Mul64(x, r.lo)
	fraction, carry := bits.Add64(fraction, lower, 0)
	lo, carry = bits.Add64(lo, part, carry)
	return wide{hi + carry, lo}, fraction
}

// timesWide returns the whole part of x times r, and false if it is 2⁶⁴ or more. x must be below
// 2⁹⁶ and the ratio at most 1, so that no other sum or product overflows.
func (r *ratio) timesWide(x wide) (product uint64, ok bool) {
	whole, fraction := r.times(x.lo)
	over, middle := bits.Mul64(x.hi, r.hi)
	middleHi, low := bits.Mul64(x.hi, r.lo)
	_, carry := bits.Add64(fraction, low, 0)
	lo, carry1 := bits.Add64(whole.lo, middle, carry)
	lo, carry2 := bits.Add64(lo, middleHi, 0)
	return lo, x.hi*r.whole|over|carry1|carry2 == 0
}

// waitFor returns the time from now until the rate has supplied x, which it has not yet, or
// tb.Never.
func (m *layout) waitFor(x wide, now uint64) time.Duration {
	var d uint64
	var ok bool
	if m.supply.rate.whole == 0 { // timeFor, inlined by hand
		whole, fraction := m.supply.inverse.times(x.lo)
		_, part := bits.Sub64(0, fraction, 0)
		d, part = bits.Add64(whole.lo, 0, part)
		ok = x.hi|whole.hi|part == 0
	} else {
		d, ok = m.supply.timeFor(x)
	}
	if !ok || d > m.end-m.supply.from {
		return tb.Never
	}
	return time.Duration(min(m.supply.from+d-now, uint64(tb.Never)))
}

// wait returns the time from now to then, which is later, or tb.Never if no Duration can hold it
// or the clock ends before then.
func (m *layout) wait(now, then uint64) time.Duration {
	if then > m.end {
		return tb.Never
	}
	return time.Duration(min(then-now, uint64(tb.Never)))
}
