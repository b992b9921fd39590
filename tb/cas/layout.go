package cas

import (
	"math/bits"

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
	end         uint64 // last instant that the clock can reach

	owner uint64    // the tier and, above tierBits, the number of the era
	begin uint64    // instant of the change that made the layout
	eras  []*layout // that ended before, of the same tier

	until    uint64 // of an ended era: instant of the change that ended it
	supplied int64  // of an ended era: millionths of a token from begin to until
}

func newLayout(l tb.Limit) layout {
	scale, _ := unit.Scale(l.Capacity) // more units would take bits from the delta
	m := layout{
		limit:      l,
		supply:     newSupply(l, scale),
		tokens:     uint64(l.Capacity),
		capacity:   uint64(l.Capacity) * scale,
		scale:      scale,
		scaleRecip: 1<<63/scale + 1,
	}
	// step adds a cost to a deficit before it compares the sum with the capacity. The sum may
	// need one bit more than the capacity.
	m.deficitBits = uint8(bits.Len64(2*m.capacity - 1))
	m.deficitMask = 1<<m.deficitBits - 1
	m.end = endOf(firstInstant(l))
	return m
}

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
func (m *layout) fits(delta uint64) bool { return delta>>(63-m.deficitBits&63) == 0 }

func isSealed(word uint64) bool { return word >= sealBit }

// owns reports whether c has this layout.
func (m *layout) owns(c *cell) bool { return c.owner == m.owner }
