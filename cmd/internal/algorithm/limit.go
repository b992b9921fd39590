package algorithm

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// unitsPerToken is the resolution of a cost.
const unitsPerToken = 1_000_000

// maxWindow is 146 years. The sum of an instant and two windows is then below 2⁶⁴.
const maxWindow = 1 << 62

// Limit is a tb.Limit in units.
type Limit struct {
	limit    tb.Limit
	capacity uint64
	units    uint64 // supplied every per nanoseconds: a fraction in lowest terms
	per      uint64
	window   uint64 // nanoseconds in which the rate supplies the capacity, rounded up
}

// NewLimit returns l in units. It returns an error if l is not valid, or if the rate needs more
// than 146 years to supply the capacity.
func NewLimit(l tb.Limit) (*Limit, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	capacity := big.NewInt(int64(l.Capacity) * unitsPerToken)
	units := new(big.Int).Mul(big.NewInt(l.Tokens), big.NewInt(unitsPerToken))
	rate := new(big.Rat).SetFrac(units, big.NewInt(int64(l.Per)))
	window := new(big.Int).Mul(capacity, rate.Denom())
	window.Add(window, rate.Num())
	window.Sub(window, big.NewInt(1)).Quo(window, rate.Num())
	if !rate.Num().IsUint64() || !window.IsUint64() || window.Uint64() > maxWindow {
		return nil, fmt.Errorf("a window of %d tokens at %d every %v: want at most 146 years",
			l.Capacity, l.Tokens, l.Per)
	}
	return &Limit{
		limit: l, capacity: capacity.Uint64(), window: window.Uint64(),
		units: rate.Num().Uint64(), per: rate.Denom().Uint64(),
	}, nil
}

// Window returns the time in which the rate supplies the burst, rounded up to a nanosecond.
func (l *Limit) Window() time.Duration { return time.Duration(l.window) }

// Units returns a positive number of tokens in units, rounded up, or more than the burst if the
// tokens are above it.
func (l *Limit) Units(tokens float64) uint64 {
	if tokens > float64(l.limit.Capacity) {
		return l.capacity + 1
	}
	units := math.Floor(tokens * unitsPerToken)
	if units/unitsPerToken < tokens {
		units++
	}
	return uint64(units)
}

// moment is an exact time: nanoseconds, and a part of one in 1/Limit.units.
type moment struct{ ns, part uint64 }

// at returns the moment of an instant.
func at(now uint64) moment { return moment{ns: now} }

// before reports whether m is before o.
func (m moment) before(o moment) bool { return m.ns < o.ns || m.ns == o.ns && m.part < o.part }

// later returns the later of two moments.
func later(a, b moment) moment {
	if a.before(b) {
		return b
	}
	return a
}

// supplied returns the moment at which the rate has supplied the units after m. The units are at
// most the capacity.
func (l *Limit) supplied(m moment, units uint64) moment {
	hi, lo := bits.Mul64(units, l.per)
	lo, carry := bits.Add64(lo, m.part, 0)
	ns, part := bits.Div64(hi+carry, lo, l.units)
	return moment{m.ns + ns, part}
}
