package suggest

import (
	"math"
	"math/bits"

	"github.com/seed-181794aa/ratelimit/tb"
)

// finest is the most units that a token has: a unit is then a millionth of a token.
const finest = 1_000_000

// coarser are the capacities from which on a unit is ten times as much as below. The quantum of the
// contract, Capacity·2⁻²³, fixes them: see DESIGN.md §2.
var coarser = [...]uint64{84, 839, 8_389, 83_887, 838_861, 8_388_608}

// coarseness returns how many of the finest units a unit of a capacity is.
func coarseness(capacity uint64) uint64 {
	k := uint64(1)
	for i := 0; i < len(coarser) && capacity >= coarser[i]; i++ {
		k *= 10
	}
	return k
}

// clock is the supply clock of a rate: S(t) in DESIGN.md §1.
type clock struct {
	tokens, per uint64
	first       uint64 // instant of the log's first request: whole periods, below 2⁶³ ns
	// pace is less than the finest units that are supplied in a nanosecond, by a millionth. So what is
	// supplied in a time, rounded down, is more than a token if the pace says that it is.
	pace float64
}

func newClock(l tb.Limit) clock {
	per := uint64(l.Per)
	return clock{
		tokens: uint64(l.Tokens), per: per, first: math.MaxInt64 / per * per,
		pace: (1 - 1e-6) * finest * float64(l.Tokens) / float64(l.Per),
	}
}

// reading is what a supply clock shows: whole tokens, and the finest units of the rest.
type reading struct{ tokens, units uint64 }

// at returns the reading at a time, in nanoseconds after the log's first request.
func (c *clock) at(t int64) reading {
	instant := c.first + uint64(t)
	hi, lo := bits.Mul64(instant, c.tokens)
	tokens, rest := bits.Div64(hi, lo, c.per)
	hi, lo = bits.Mul64(rest, finest)
	units, _ := bits.Div64(hi, lo, c.per)
	return reading{tokens, units}
}

// most is more than any deficit, in units: 4 · 10¹² requests at one time would lack it.
const most = 1 << 62

// since returns the units that were supplied from an earlier reading to r, or most if that is
// less. A unit is as many of the finest units as coarse says. This is exact, because a coarse
// clock is a fine one rounded down.
func (r reading) since(earlier reading, coarse uint64) uint64 {
	tokens := r.tokens - earlier.tokens
	switch {
	case tokens > most/finest:
		return most
	case coarse == 1:
		return tokens*finest + r.units - earlier.units
	}
	return tokens*(finest/coarse) + r.units/coarse - earlier.units/coarse
}

// None is the burst of a client that is refused with every burst.
const None = tb.MaxCapacity + 1

// needOf returns the least capacity that has room for a deficit, None if no capacity has. The
// deficit is in the finest units, at a time at which the clock shows phase units beyond whole
// tokens. All requests take whole tokens.
//
// A capacity from 84 on has coarser units. The bucket is full at the position F = S + deficit of
// the fine clock S, and at ⌊F/k⌋ of a clock whose units are k fine ones, because whole tokens are
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
