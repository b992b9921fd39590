package cas

import (
	"math"
	"math/big"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// wide is an integer of 128 bits: a reading of the supply clock, which may take 84 bits and more.
type wide struct{ hi, lo uint64 }

func (x wide) plus(n uint64) wide {
	lo, carry := bits.Add64(x.lo, n, 0)
	return wide{x.hi + carry, lo}
}

func (x wide) minus(n uint64) wide {
	lo, borrow := bits.Sub64(x.lo, n, 0)
	return wide{x.hi - borrow, lo}
}

func (x wide) before(y wide) bool { return x.hi < y.hi || x.hi == y.hi && x.lo < y.lo }

// after returns the units from y to x: 0 if x is earlier, and at most the greatest uint64, which is
// more than any deficit and any delta.
func (x wide) after(y wide) uint64 {
	lo, borrow := bits.Sub64(x.lo, y.lo, 0)
	hi, _ := bits.Sub64(x.hi, y.hi, borrow)
	if hi == 0 {
		return lo
	}
	if hi>>63 > 0 {
		return 0
	}
	return math.MaxUint64
}

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

// timeOf returns the first t ≥ from with S(t) ≥ x, or the greatest uint64 if that t is later.
func (s *supply) timeOf(x wide) uint64 {
	d, ok := s.timeFor(x)
	if t := s.from + d; ok && t >= d {
		return t
	}
	return math.MaxUint64
}

// timeFor returns the least time in which the rate supplies x units, and false if it is 2⁶⁴ ns or
// more: DESIGN.md §1, the inverse.
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

// firstInstant returns the instant of the clock's first reading: the most whole periods within
// 2⁶³ ns, at least 146 years. DESIGN.md §1 has the reason.
func firstInstant(l tb.Limit) uint64 {
	per := uint64(l.Per)
	return math.MaxInt64 / per * per
}

// endOf returns the last instant of a clock: 292 years after its first reading.
func endOf(firstInstant uint64) uint64 { return firstInstant + math.MaxInt64 }

// clock turns readings into instants: nanoseconds since the epoch. Readings that are too early
// become instant 0. No reading is later than 292 years after the first one.
type clock struct {
	now          func() time.Time          // nil for the monotonic clock
	firstInstant uint64                    // instant of the first reading
	start        time.Time                 // first reading without an injected clock
	first        atomic.Pointer[time.Time] // first reading of an injected clock
}

func newClock(now func() time.Time, start time.Time, l tb.Limit) clock {
	return clock{now: now, firstInstant: firstInstant(l), start: start}
}

// read reads the clock.
func (c *clock) read() uint64 {
	if c.now == nil {
		return c.firstInstant + uint64(time.Since(c.start))
	}
	return c.instant(c.now())
}

// time reads the clock, for a caller that needs the wall clock too.
func (c *clock) time() time.Time {
	if c.now != nil {
		return c.now()
	}
	return time.Now()
}

// instant returns the instant of the reading t.
func (c *clock) instant(t time.Time) uint64 {
	start := &c.start
	if c.now != nil {
		if start = c.first.Load(); start == nil {
			start = c.begin(t)
		}
	}
	return c.firstInstant + uint64(max(t.Sub(*start), -time.Duration(c.firstInstant)))
}

// begin makes t the first reading of an injected clock, unless it has one, and returns the first
// reading. It is not inlined, because t escapes here: inlined, it would make every reading
// allocate.
//
//go:noinline
func (c *clock) begin(t time.Time) *time.Time {
	c.first.CompareAndSwap(nil, &t)
	return c.first.Load()
}
