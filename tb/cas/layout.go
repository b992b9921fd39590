package cas

import (
	"math/bits"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/unit"
	"github.com/seed-181794aa/ratelimit/tb"
)

const (
	maxScale = unit.MaxScale

	// sealBit is set in a word that no grant may change. The bits below it keep the delta and the
	// deficit.
	sealBit = uint64(1) << 63

	// evicted is the word of a cell that is no longer in the table. It is sealed, and its
	// deficit is one that no bucket can have.
	evicted = ^uint64(0)
)

// tierBits is the width of a tier in the owner of a cell.
const tierBits = 16

// layout is a limit in integers, and how a word holds delta and deficit. The cells of one era of
// one tier share it. It is immutable.
type layout struct {
	limit       tb.Limit
	supply      supply
	tokens      uint64 // capacity in tokens
	capacity    uint64 // capacity in units
	scale       uint64 // units in a token
	scaleRecip  uint64 // just above 2⁶³/scale, to divide by scale
	deficitBits uint8  // width of the deficit
	deficitMask uint64
	mostDelta   uint64 // that a word can hold
	end         uint64 // last instant that the clock can reach

	owner uint64    // the tier and, above tierBits, the number of the era
	begin uint64    // instant of the change that made the layout
	eras  []*layout // that ended before, of the same tier

	until uint64 // of an ended era: instant of the change that ended it
	run   run    // of an ended era: with the eras before it
}

// run is what eras in a row do to a bucket, in millionths of a token: it gets gain, and has most at
// most when the last one ends. If its own time is later than that, it only has least at most.
type run struct {
	eras              int
	gain, most, least int64
}

// newLayout returns the first layout of a tier.
func newLayout(l tb.Limit, tier int, firstInstant uint64) *layout {
	scale, _ := unit.Scale(l.Capacity) // more units would take bits from the delta
	m := layout{
		limit:      l,
		supply:     newSupply(l, scale),
		tokens:     uint64(l.Capacity),
		capacity:   uint64(l.Capacity) * scale,
		scale:      scale,
		scaleRecip: 1<<63/scale + 1,
		end:        endOf(firstInstant),
		owner:      uint64(tier),
	}
	if per := uint64(l.Per); per <= firstInstant {
		m.supply.from = firstInstant % per // the first reading is after whole periods
	}
	// step adds a cost to a deficit before it compares the sum with the capacity. The sum may
	// need one bit more than the capacity.
	m.deficitBits = uint8(bits.Len64(2*m.capacity - 1))
	m.deficitMask = 1<<m.deficitBits - 1
	m.mostDelta = 1<<(63-m.deficitBits) - 1
	return &m
}

func tierOf(owner uint64) int { return int(owner & (1<<tierBits - 1)) }

// pack returns the word of a cell. The delta has the high bits, next to the seal, because only
// the delta outgrows its bits; see fits.
func (m *layout) pack(delta, deficit uint64) uint64 {
	return delta<<(m.deficitBits&63) | deficit
}

// unpack returns the delta and the deficit of a word, sealed or not.
func (m *layout) unpack(word uint64) (delta, deficit uint64) {
	return word &^ sealBit >> (m.deficitBits & 63), word & m.deficitMask
}

// fits reports whether a word can hold delta.
func (m *layout) fits(delta uint64) bool { return delta <= m.mostDelta }

func isSealed(word uint64) bool { return int64(word) < 0 }

// unitsOf returns cost in units, rounded up, or more than the capacity if cost is above it.
func (m *layout) unitsOf(cost float64) uint64 {
	if cost > float64(int64(m.tokens)) {
		return m.capacity + 1
	}
	return unit.RoundUp(cost, m.scale)
}

// beyond returns the units of an actual cost beyond the units of an estimate, and the reverse.
func (m *layout) beyond(actual, estimate float64) (more, less uint64) {
	a := unit.Settled(actual, m.scale)
	e := unit.Settled(estimate, m.scale) // may be above a new capacity
	return a - min(a, e), e - min(a, e)
}

// tokensIn returns the whole tokens in a number of units below 2³². The product is too large
// by at most units/2⁶³ < 1/scale, so the result is exact.
func (m *layout) tokensIn(units uint64) int {
	hi, _ := bits.Mul64(units<<1, m.scaleRecip)
	return int(hi)
}

// micros returns units in millionths of a token.
func (m *layout) micros(units uint64) uint64 { return units * (maxScale / m.scale) }

// microsUpTo returns units in millionths of a token, at most more than the deepest debt and a
// capacity.
func (m *layout) microsUpTo(units uint64) uint64 {
	return m.micros(min(units, 2*deepestDebt*m.scale))
}

// full returns the capacity in millionths of a token.
func (m *layout) full() int64 { return int64(m.micros(m.capacity)) }

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

// timeTo returns the time from now to then, which is later, or tb.Never if no Duration can hold it
// or the clock ends before then.
func (m *layout) timeTo(now, then uint64) time.Duration {
	if then > m.end {
		return tb.Never
	}
	return time.Duration(min(then-now, uint64(tb.Never)))
}
