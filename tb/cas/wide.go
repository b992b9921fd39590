package cas

import (
	"math"
	"math/bits"
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
