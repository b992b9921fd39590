package cas

import (
	"math"
	"math/bits"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

const (
	// maxScale is the finest fixed point: a millionth of a token.
	maxScale = 1_000_000

	// resolution is how many parts of its capacity a bucket must at least tell
	// apart, if it does not have maxScale. Finer would take bits from the delta,
	// and so make buckets move to a new base more often.
	resolution = 1 << 23
)

// meter is what all buckets of a limiter share: the limit as integers, and how they
// are laid out in a word. It is immutable.
type meter struct {
	supply
	tokens   uint64 // capacity in tokens
	capacity uint64 // and in units
	scale    uint64 // units of a token
	recip    uint64 // just above 2⁶³/scale, to divide by scale
	width    uint8  // bits of the deficit
	shift    uint8  // see split
	mask     uint64 // of the deficit
	far      uint64 // more blocks than this are beyond any bucket's memory
	end      uint64 // last instant that the clock can reach
}

func newMeter(l tb.Limit) meter {
	scale := uint64(1)
	for scale < maxScale && uint64(l.Capacity)*scale < resolution {
		scale *= 10
	}
	m := meter{
		supply:   newSupply(l, scale),
		tokens:   uint64(l.Capacity),
		capacity: uint64(l.Capacity) * scale,
		scale:    scale,
		recip:    1<<63/scale + 1,
	}
	// As much room for debt as for tokens, for a bucket that is charged after the
	// fact.
	m.width = uint8(bits.Len64(2*m.capacity - 1))
	m.mask = 1<<m.width - 1
	m.shift = uint8(bits.Len64(m.rate.whole))
	m.far = 1 << (62 - m.shift)
	m.end = epoch(l) + math.MaxInt64
	return m
}

// split returns a number of units as blocks of 2^shift units and the rest. A block is
// what the rate supplies in at most two nanoseconds, or one unit if that is more. So
// while S(t) may take 84 bits, the number of blocks fits a word, and serves as the
// base of a bucket.
func (m *meter) split(hi, lo uint64) (blocks, rest uint64) {
	k := m.shift & 63
	return hi<<(-k&63) | lo>>k, lo & (1<<k - 1)
}

// since returns the units supplied from base to t, whose S is so many blocks and the
// rest: 0 if t is the earlier of the two, and no more than a bucket could miss if they
// are very far apart.
func (m *meter) since(base, blocks, rest uint64) uint64 {
	if blocks < base {
		return 0
	}
	return min(blocks-base, m.far)<<(m.shift&63) | rest
}

// until returns how many units are supplied from t, whose S is so many blocks and the rest,
// to so many units after base: 0 if t is the later of the two, and no more than a bucket
// could miss if they are very far apart.
func (m *meter) until(base, units, blocks, rest uint64) uint64 {
	if blocks >= base {
		return units - min(units, m.since(base, blocks, rest))
	}
	return min(base-blocks, m.far)<<(m.shift&63) + units - rest
}

// impossible is a cost that no bucket can ever pay.
func (m *meter) impossible() uint64 { return m.capacity + 1 }

// whole returns the cost of n tokens in units.
func (m *meter) whole(n int) (uint64, error) {
	switch {
	case n <= 0:
		return 0, tb.ErrInvalidCost
	case uint64(n) > m.tokens:
		return m.impossible(), nil
	}
	return uint64(n) * m.scale, nil
}

// decimal returns the cost of so many tokens in units, rounded up. What counts is the
// decimal number that cost stands for, not the binary fraction it became: the least
// number of units that, as a float64 of tokens, is not below cost. So 0.1 is a tenth.
func (m *meter) decimal(cost float64) (uint64, error) {
	scale := float64(m.scale)
	switch {
	case !(cost > 0) || math.IsInf(cost, 1): // NaN is not above 0
		return 0, tb.ErrInvalidCost
	case cost > float64(m.tokens):
		return m.impossible(), nil
	}
	units := math.Floor(cost * scale)
	if units/scale < cost {
		units++
	}
	return uint64(units), nil
}

// tokensIn returns the whole tokens in so many units, below 2³². The product is too
// large by at most units/2⁶³ < 1/scale, so it is exact.
func (m *meter) tokensIn(units uint64) int {
	hi, _ := bits.Mul64(units<<1, m.recip)
	return int(hi)
}

// position returns S at so many units after base.
func (m *meter) position(base, units uint64) (hi, lo uint64) {
	k := m.shift & 63
	lo, carry := bits.Add64(base<<k, units, 0)
	return base>>1>>(63-k) + carry, lo
}

// waitFor returns the time from now until so many units after base are supplied, or
// tb.Never.
func (m *meter) waitFor(base, units, now uint64) time.Duration {
	then, ok := m.reaches(m.position(base, units))
	if !ok {
		return tb.Never
	}
	return m.wait(now, then)
}

// wait returns the time from now to then, or tb.Never if no Duration can hold it or
// the clock ends before.
func (m *meter) wait(now, then uint64) time.Duration {
	if then > m.end {
		return tb.Never
	}
	return time.Duration(min(then-now, uint64(tb.Never)))
}
