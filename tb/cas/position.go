package cas

import (
	"math"
	"math/bits"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// position is a reading of the supply clock S in two words: whole blocks, and the units beyond
// them. A block is at least the supply of a nanosecond, and at least one unit. S may take 84 bits
// and more, but a number of blocks fits one word. The base of a cell is such a number.
type position struct{ blocks, rest uint64 }

// positionOf returns S, given in two words, as a position.
func (m *layout) positionOf(hi, lo uint64) position {
	k := m.blockBits & 63
	return position{hi<<(-k&63) | lo>>k, lo & (1<<k - 1)}
}

// positionAt returns S(t).
func (m *layout) positionAt(t uint64) position {
	return m.positionOf(m.supply.unitsBy(t))
}

// elapsed returns the units from base to S(t), as beyondBase does.
func (m *layout) elapsed(base, t uint64) uint64 {
	hi, lo := m.supply.unitsBy(t)
	return m.beyondBase(base, hi, lo)
}

// unitsAfter returns S at a number of units after base.
func (m *layout) unitsAfter(base, units uint64) (hi, lo uint64) {
	k := m.blockBits & 63
	lo, carry := bits.Add64(base<<k, units, 0)
	return base>>1>>(63-k) + carry, lo
}

// since returns the units from base to p, 0 if p is earlier. It counts at most maxBlocks blocks,
// which is more than any deficit and any delta.
func (m *layout) since(base uint64, p position) uint64 {
	if p.blocks < base {
		return 0
	}
	return min(p.blocks-base, m.maxBlocks)<<(m.blockBits&63) | p.rest
}

// beyondBase returns the units from base to S, given in two words: 0 if S is earlier, and at most
// the greatest uint64, which is more than any deficit and any delta.
func (m *layout) beyondBase(base, hi, lo uint64) uint64 {
	k := m.blockBits & 63
	lo, borrow := bits.Sub64(lo, base<<k, 0)
	hi, _ = bits.Sub64(hi, base>>1>>(63-k), borrow)
	if hi == 0 {
		return lo
	}
	if hi>>63 > 0 {
		return 0
	}
	return math.MaxUint64
}

// until returns the units from p to the position that is the given units after base, 0 if p is
// later. It counts at most maxBlocks blocks, as since does.
func (m *layout) until(base, units uint64, p position) uint64 {
	if p.blocks >= base {
		return units - min(units, m.since(base, p))
	}
	return min(base-p.blocks, m.maxBlocks)<<(m.blockBits&63) + units - p.rest
}

// waitFor returns the time from now until the rate has supplied a number of units after base, which
// it has not yet, or tb.Never.
func (m *layout) waitFor(base, units, now uint64) time.Duration {
	hi, lo := m.unitsAfter(base, units)
	var d uint64
	var ok bool
	if m.supply.rate.whole == 0 { // timeFor, inlined by hand
		over, whole, fraction := m.supply.inverse.times(lo)
		_, part := bits.Sub64(0, fraction, 0)
		d, part = bits.Add64(whole, 0, part)
		ok = hi|over|part == 0
	} else {
		d, ok = m.supply.timeFor(hi, lo)
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
