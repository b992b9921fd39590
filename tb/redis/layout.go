package redis

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

const (
	// maxScale is the most units that a token has, and leastUnits is the least number of units in a
	// capacity with fewer. They give the units of tb/cas and tb/mutex.
	maxScale   = 1_000_000
	leastUnits = 1 << 23

	// exact is the bound below which a float64, the only number of a script, holds all integers.
	exact = 1 << 53

	// The bounds of wide.lua and narrow.lua. Above narrowDivisor, the product of two remainders
	// would not be exact.
	wideBits      = 48
	narrowDivisor = 1 << 26

	// format is the first byte of a bucket's value, less the digits of the scale. See take.lua.
	format = 16
)

// layout is a limit in the integers of the script. It is immutable.
//
// The supply clock of tb/mutex shows S(t) = ⌊t·n/d⌋ units at t µs after 1970, so a bucket has the
// same phase on every node.
type layout struct {
	capacity uint64 // units
	scale    uint64 // units in a token
	n, d     uint64 // the rate, in units a µs, is n/d in lowest terms
	script   *script
	takeEach *script
	takeAll  *script
	giveBack *script
	header   []byte // the part of the argument that all calls share
}

// newLayout returns a *tb.ConfigError if the limit is out of the range of tb or of the script.
func newLayout(limit tb.Limit) (layout, error) {
	if err := limit.Validate(); err != nil {
		return layout{}, err
	}
	m, first := layout{scale: 1}, byte(format)
	for m.scale < maxScale && uint64(limit.Capacity)*m.scale < leastUnits {
		m.scale *= 10
		first++
	}
	m.capacity = uint64(limit.Capacity) * m.scale
	rate := big.NewRat(limit.Tokens, int64(limit.Per))
	rate.Mul(rate, big.NewRat(int64(m.scale)*int64(time.Microsecond), 1))
	if max(rate.Num().BitLen(), rate.Denom().BitLen()) > wideBits {
		return layout{}, &tb.ConfigError{
			Field: "Tokens/Per",
			Value: fmt.Sprintf("N/D = %v units a microsecond, with %d units in a token", rate, m.scale),
			Range: fmt.Sprintf("N and D below 2^%d in lowest terms", wideBits),
		}
	}
	m.n, m.d = rate.Num().Uint64(), rate.Denom().Uint64()
	m.script, m.takeEach = wide, wideTakeEach
	m.takeAll, m.giveBack = wideTakeAll, wideGiveBack
	if m.isNarrow() {
		m.script, m.takeEach = narrow, narrowTakeEach
		m.takeAll, m.giveBack = narrowTakeAll, narrowGiveBack
	}
	for _, x := range []uint64{m.capacity, m.n, m.d} {
		m.header = binary.BigEndian.AppendUint64(m.header, math.Float64bits(float64(x)))
	}
	m.header = append(m.header, first)
	return m, nil
}

// reserve takes from the capacity what the rate supplies in h, rounded up to tokens: a capacity is
// a whole number of them. It reports false, and changes nothing, if the rate supplies less than two
// tokens in h or if more than half of the capacity would go.
func (m *layout) reserve(h time.Duration) bool {
	hi, lo := bits.Mul64(m.n, uint64(h.Microseconds()))
	lo, carry := bits.Add64(lo, m.d-1, 0)
	if hi += carry; hi >= m.d {
		return false
	}
	units, _ := bits.Div64(hi, lo, m.d)
	tokens := (units-1)/m.scale + 1
	if units < 2*m.scale || tokens > m.capacity/m.scale/2 {
		return false
	}
	m.capacity -= tokens * m.scale
	binary.BigEndian.PutUint64(m.header, math.Float64bits(float64(m.capacity)))
	return true
}

// isNarrow reports whether narrow.lua is exact.
func (m *layout) isNarrow() bool {
	hi, lo := bits.Mul64(m.capacity+2, m.d)
	return m.d <= narrowDivisor && hi == 0 && lo < exact
}

// impossible returns a cost that no bucket can ever pay.
func (m *layout) impossible() uint64 { return m.capacity + 1 }

// unitsOf returns n tokens in units, or impossible if n is above the capacity. n is positive.
func (m *layout) unitsOf(n int) uint64 {
	if uint64(n) > m.capacity/m.scale {
		return m.impossible()
	}
	return uint64(n) * m.scale
}

// unitsOfCost returns cost in units, or impossible if it is above the capacity. It rounds up to the
// least number of units whose float64 in tokens is not below cost, so 0.1 is exactly a tenth.
func (m *layout) unitsOfCost(cost float64) uint64 {
	if cost > float64(m.capacity/m.scale) {
		return m.impossible()
	}
	scale := float64(m.scale)
	units := math.Floor(cost * scale)
	if units/scale < cost {
		units++
	}
	return uint64(units)
}

// tokens returns units in tokens.
func (m *layout) tokens(units uint64) float64 { return float64(units) / float64(m.scale) }

// noDeadline is the deadline of a cost that is never late.
const noDeadline = 1<<56 - 1

// item is a cost, and its deadline in µs of the clock that decides, at most noDeadline.
type item struct{ cost, deadline uint64 }

// argument returns the argument of take.lua.
func (m *layout) argument(items []item) []byte {
	b := make([]byte, 0, len(m.header)+11*len(items)+1) // AppendUint64 writes a byte too many
	return appendItems(append(b, m.header...), items)
}

func appendItems(b []byte, items []item) []byte {
	for _, it := range items {
		b = binary.BigEndian.AppendUint64(b, it.deadline<<8)
		b = binary.BigEndian.AppendUint32(b[:len(b)-1], uint32(it.cost))
	}
	return b
}

// appendBucket appends the part of the argument of takeeach.lua for one bucket. It has at most 255
// items.
func appendBucket(b []byte, items []item) []byte {
	return appendItems(append(b, byte(len(items))), items)
}

// appendGiveBack appends the part of the argument of giveback.lua for a cost that was taken when
// the bucket's own time was at.
func (m *layout) appendGiveBack(b []byte, cost, at uint64) []byte {
	b = append(b, m.header[8:]...) // without the capacity
	b = binary.BigEndian.AppendUint32(b, uint32(cost))
	return append(b, binary.BigEndian.AppendUint64(nil, at)[1:]...)
}

// state is a bucket at the time of a decision. Both times are in µs since 1970.
type state struct {
	time    uint64 // the bucket's own time, now or later
	deficit uint64 // in units, at most the capacity
	now     uint64 // the clock that decided
}

// parse returns the state before the costs from a reply of the script, or false if the reply has
// another form.
func (m *layout) parse(reply string, items []item) (s state, ok bool) {
	b := []byte(reply)
	switch len(b) {
	case 12: // the value after all costs that were in time were granted
		s.now, s.deficit = uint56(b[1:]), uint64(binary.BigEndian.Uint32(b[8:]))
		s.time = s.now
		for _, it := range items {
			if s.now <= it.deadline {
				s.deficit -= it.cost
			}
		}
		return s, true
	case 18:
		s.time, s.deficit = uint56(b), uint64(binary.BigEndian.Uint32(b[7:]))
		s.now = uint56(b[11:])
		return s, true
	}
	return state{}, false
}

func uint56(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint32(b))<<24 | uint64(binary.BigEndian.Uint32(b[3:]))&(1<<24-1)
}
