package suggest

import "github.com/seed-181794aa/ratelimit/tb"

// None is the burst of a client that is refused with every burst.
const None = tb.MaxCapacity + 1

// needOf returns the least capacity that has room for a deficit, None if no capacity has. The
// deficit is in the finest units, at a time at which the clock shows phase units beyond whole
// tokens. All costs are whole tokens.
//
// A capacity from 84 on has coarser units. The bucket is full at the position F = S + deficit of
// the fine clock S, and at ⌊F/k⌋ of a clock whose units are k fine ones, because costs are
// multiples of k. So the coarse deficit is ⌊F/k⌋ − ⌊S/k⌋, the fine one rounded up or down: see
// DESIGN.md here.
func needOf(deficit, phase uint64) uint64 {
	need := (deficit + finest - 1) / finest // has room at any scale
	if need > None {
		return None
	}
	if below := need - 1; below > 0 {
		k := coarseness(below)
		if (phase%k+deficit)/k <= below*(finest/k) {
			return below
		}
	}
	return need
}
