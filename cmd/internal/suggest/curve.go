package suggest

import "math"

// curve is one point of a client's arrival curve: the greatest excess of its requests over a rate,
// in any interval.
type curve struct {
	// deficit is what the bucket lacks after the latest request, in units. Nothing was refused.
	deficit uint64
	// need is the least capacity that has room for all deficits so far.
	need uint32
}

// add takes a cost from the bucket after a supply, both in units.
func (c *curve) add(supplied, cost uint64) {
	c.deficit = min(c.deficit-min(c.deficit, supplied)+cost, most)
}

// require raises the need.
func (c *curve) require(need uint64) { c.need = max(c.need, uint32(min(need, None))) }

// unitsOf returns a cost of at most MaxCapacity tokens in units, rounded up. It is the least number
// of units whose float64 in tokens is not below cost, so 0.1 is exactly a tenth.
func unitsOf(cost float64, scale uint64) uint64 {
	units := math.Floor(cost * float64(scale))
	if units/float64(scale) < cost {
		units++
	}
	return uint64(units)
}
