// Package unit is the resolution of a bucket in tb/cas and tb/redis. They count tokens in units.
// tb/mutex has the same units and an arithmetic of its own, so that it can check both.
package unit

import "math"

const (
	// MaxScale is the most units in a token: a unit is then a millionth of a token.
	MaxScale = 1_000_000

	// Least is the least number of units in a capacity, unless a token has MaxScale units. The
	// quantum of the contract, Capacity·2⁻²³, fixes it.
	Least = 1 << 23

	// MostSettled is the most units of an actual cost. A greater one counts as MostSettled.
	MostSettled = 1 << 52
)

// Scale returns the number of units in a token, which is 10 to the power of digits.
func Scale(capacity int) (scale uint64, digits byte) {
	scale = 1
	for scale < MaxScale && uint64(capacity)*scale < Least {
		scale *= 10
		digits++
	}
	return scale, digits
}

// RoundUp returns the least number of units whose float64 in tokens is not below tokens. So 0.1 is
// exactly a tenth, although its binary fraction is a little more. The result must be below 2⁶³.
func RoundUp(tokens float64, scale uint64) uint64 {
	if whole := int64(tokens); float64(whole) == tokens {
		return uint64(whole) * scale // without the division, which takes longer than the rest
	}
	units := math.Floor(tokens * float64(scale))
	if units/float64(scale) < tokens {
		units++
	}
	return uint64(units)
}

// Settled is RoundUp for an actual cost.
func Settled(tokens float64, scale uint64) uint64 {
	if tokens >= MostSettled/float64(scale) {
		return MostSettled
	}
	return RoundUp(tokens, scale)
}

// IsActual reports whether a number of tokens is an actual cost: at least 0, and finite.
func IsActual(tokens float64) bool {
	return tokens >= 0 && !math.IsInf(tokens, 1) // NaN is not at least 0
}
