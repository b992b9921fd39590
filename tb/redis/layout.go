package redis

import (
	"fmt"
	"math/big"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/unit"
	"github.com/seed-181794aa/ratelimit/tb"
)

const (
	// rateBits is the most bits of the two numbers of a rate: see buckets.lua.
	rateBits = 48

	// deepest is the most debt of a bucket in units. The most for a call of Reserve is a capacity.
	deepest = 1 << 31

	// maxSupply is above all debts, also behind a hold of years, unless the bucket is full in µs.
	maxSupply = 1 << 62

	// lastInstant is the end of the script's exact times, in µs: the year 2255.
	lastInstant = 1<<53 - 1
)

// layout is a limit in the integers of the script. It is immutable.
//
// The supply clock of tb/mutex shows S(t) = ⌊t·n/d⌋ units at t µs after 1970, so a bucket has the
// same phase on every node.
type layout struct {
	limit    tb.Limit
	capacity uint64   // units
	scale    uint64   // units in a token
	n, d     uint64   // the rate, in units a µs, is n/d in lowest terms
	header   [17]byte // the limit in the argument of the script
	leased   bool     // the capacity is less by what leases may spend
}

// newLayout returns a *tb.ConfigError if the limit is out of the range of tb or of the script.
// lease is the time of leases, or 0.
func newLayout(limit tb.Limit, lease time.Duration) (*layout, error) {
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	m := &layout{limit: limit}
	m.scale, m.header[0] = unit.Scale(limit.Capacity)
	m.capacity = uint64(limit.Capacity) * m.scale
	rate := big.NewRat(limit.Tokens, int64(limit.Per))
	rate.Mul(rate, big.NewRat(int64(m.scale)*int64(time.Microsecond), 1))
	if max(rate.Num().BitLen(), rate.Denom().BitLen()) > rateBits {
		return nil, &tb.ConfigError{
			Field: "Tokens/Per",
			Value: fmt.Sprintf("N/D = %v units a microsecond, with %d units in a token", rate, m.scale),
			Range: fmt.Sprintf("N and D below 2^%d in lowest terms", rateBits),
		}
	}
	m.n, m.d = rate.Num().Uint64(), rate.Denom().Uint64()
	if lease > 0 {
		m.leased = m.reserve(rate, lease)
	}
	appendUint(appendUint(appendUint(m.header[:1], m.capacity, 4), m.n, 6), m.d, 6)
	return m, nil
}

// reserve takes from the capacity what a rate supplies in h, rounded up to tokens: a capacity is a
// whole number of them. It reports false, and changes nothing, if the rate supplies less than two
// tokens in h or if more than half of the capacity would go.
func (m *layout) reserve(rate *big.Rat, h time.Duration) bool {
	supply := new(big.Rat).SetFrac64(h.Microseconds(), int64(m.scale)) // in tokens
	supply.Mul(supply, rate)
	tokens := new(big.Int).Add(supply.Num(), supply.Denom())
	tokens.Sub(tokens, big.NewInt(1)).Quo(tokens, supply.Denom())
	if supply.Cmp(big.NewRat(2, 1)) < 0 || tokens.Cmp(big.NewInt(int64(m.limit.Capacity/2))) > 0 {
		return false
	}
	m.capacity -= tokens.Uint64() * m.scale
	return true
}

// unitsOf returns cost in units, rounded up, or a unit more than the capacity if it is above that.
func (m *layout) unitsOf(cost float64) uint64 {
	if cost > float64(m.capacity/m.scale) {
		return m.capacity + 1
	}
	return unit.RoundUp(cost, m.scale)
}

func (m *layout) tokens(units uint64) float64 { return float64(units) / float64(m.scale) }

// appendUint appends the lower bytes of x.
func appendUint(b []byte, x uint64, bytes int) []byte {
	for bytes--; bytes >= 0; bytes-- {
		b = append(b, byte(x>>(8*bytes)))
	}
	return b
}
