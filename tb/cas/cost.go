package cas

import (
	"math"
	"math/bits"

	"github.com/seed-181794aa/ratelimit/internal/unit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// checkCost returns tb.ErrInvalidCost unless cost is positive and finite.
func checkCost(cost float64) error {
	if !(cost > 0) || math.IsInf(cost, 1) { // NaN is not above 0
		return tb.ErrInvalidCost
	}
	return nil
}

// checkActual returns tb.ErrInvalidCost unless actual is a cost or 0.
func checkActual(actual float64) error {
	if !(actual >= 0) || math.IsInf(actual, 1) {
		return tb.ErrInvalidCost
	}
	return nil
}

// beyond returns the units of an actual cost beyond the units of an estimate, and the reverse.
func (m *layout) beyond(actual, estimate float64) (more, less uint64) {
	a := unit.Settled(actual, m.scale)
	e := unit.Settled(estimate, m.scale) // may be above a new capacity
	return a - min(a, e), e - min(a, e)
}

// impossible returns a cost that no bucket can ever pay.
func (m *layout) impossible() uint64 { return m.capacity + 1 }

// unitsOf returns cost in units, rounded up, or more than the capacity if cost is above it.
func (m *layout) unitsOf(cost float64) uint64 {
	if cost > float64(int64(m.tokens)) {
		return m.impossible()
	}
	return unit.RoundUp(cost, m.scale)
}

// tokensIn returns the whole tokens in a number of units below 2³². The product is too large
// by at most units/2⁶³ < 1/scale, so the result is exact.
func (m *layout) tokensIn(units uint64) int {
	hi, _ := bits.Mul64(units<<1, m.scaleRecip)
	return int(hi)
}

// micros returns units in millionths of a token.
func (m *layout) micros(units uint64) uint64 { return units * (maxScale / m.scale) }

// microsUpTo returns units in millionths of a token, at most unit.MostSettled of them.
func (m *layout) microsUpTo(units uint64) uint64 {
	return m.micros(min(units, unit.MostSettled/maxScale*m.scale))
}
