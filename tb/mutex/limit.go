package mutex

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// limit is a tb.Limit in units. A token is a power of ten of units: the least with which a unit
// is at most the quantum.
type limit struct {
	capacity     int64 // units
	scale        int64 // units in a token
	tokens       uint64
	per          uint64 // nanoseconds
	firstInstant uint64 // instant of the first reading: whole periods, below 2⁶³ ns
}

func newLimit(l tb.Limit) limit {
	scale := int64(1)
	for scale < 1_000_000 && int64(l.Capacity)*scale < 1<<23 {
		scale *= 10
	}
	per := uint64(l.Per)
	return limit{int64(l.Capacity) * scale, scale, uint64(l.Tokens), per, math.MaxInt64 / per * per}
}

// unitsOf returns n tokens in units, or more than the capacity.
func (l *limit) unitsOf(n int) (int64, error) {
	switch {
	case n <= 0:
		return 0, tb.ErrInvalidCost
	case int64(n) > l.capacity/l.scale:
		return l.capacity + 1, nil
	}
	return int64(n) * l.scale, nil
}

// unitsOfCost returns a cost in units, or more than the capacity. It rounds up the decimal number
// with the fewest digits that parses as cost.
func (l *limit) unitsOfCost(cost float64) (int64, error) {
	if math.IsNaN(cost) || math.IsInf(cost, 0) || cost <= 0 {
		return 0, tb.ErrInvalidCost
	}
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(cost, 'g', -1, 64))
	r.Mul(r, big.NewRat(l.scale, 1))
	units := new(big.Int).Add(r.Num(), r.Denom())
	units.Sub(units, big.NewInt(1)).Quo(units, r.Denom())
	if units.Cmp(big.NewInt(l.capacity)) > 0 {
		return l.capacity + 1, nil
	}
	return units.Int64(), nil
}

// refusal returns the decision of a call at now on a bucket that has too few tokens at since.
func (l *limit) refusal(tokens int64, since, now uint64, cost int64) tb.Decision {
	d := tb.Decision{RetryAfter: tb.Never, Remaining: int(tokens / l.scale)}
	if cost <= l.capacity {
		d.RetryAfter = l.wait(now, l.timeOf(l.supply(since).plus(uint64(cost-tokens))))
	}
	return d
}

// level returns how full a bucket is at now that has the given tokens at since.
func (l *limit) level(tokens int64, since, now uint64) tb.Level {
	supplied := func(units int64) time.Duration {
		if tokens == l.capacity {
			return 0
		}
		return l.wait(now, l.timeOf(l.supply(since).plus(uint64(units))))
	}
	return tb.Level{
		Tokens:    float64(tokens) / float64(l.scale),
		NextToken: supplied(l.scale - tokens%l.scale),
		Full:      supplied(l.capacity - tokens),
	}
}

// wait returns the time from now to then, or tb.Never if that is beyond the clock.
func (l *limit) wait(now, then uint64) time.Duration {
	if then > l.firstInstant+math.MaxInt64 {
		return tb.Never
	}
	return time.Duration(min(then-now, math.MaxInt64))
}

// supply returns the units that the rate supplies in the first t nanoseconds. It divides twice:
// for whole tokens, and for the units in the rest.
func (l *limit) supply(t uint64) wide {
	tokens, rest := product(t, l.tokens).over(l.per)
	units, _ := product(rest, uint64(l.scale)).over(l.per)
	return product(tokens, uint64(l.scale)).plus(units)
}

// timeOf returns the first t at which supply(t) is at least x, or the last instant. That is
// x·per / (tokens·scale), rounded up. In steps that fit, with x = w tokens and u units:
//
//	(w·per + ⌈u·per/scale⌉) / tokens, rounded up
func (l *limit) timeOf(x wide) uint64 {
	scale := uint64(l.scale)
	if x.hi >= scale {
		return math.MaxUint64
	}
	w, u := x.over(scale)
	part, _ := product(u, l.per).plus(scale - 1).over(scale)
	sum := product(w, l.per).plus(part).plus(l.tokens - 1)
	if sum.hi >= l.tokens {
		return math.MaxUint64
	}
	t, _ := sum.over(l.tokens)
	return t
}

// wide is an integer of 128 bits.
type wide struct{ hi, lo uint64 }

func product(a, b uint64) wide {
	hi, lo := bits.Mul64(a, b)
	return wide{hi, lo}
}

// over returns the quotient and the remainder of x by d, which must be above x.hi.
func (x wide) over(d uint64) (quotient, rest uint64) { return bits.Div64(x.hi, x.lo, d) }

func (x wide) plus(n uint64) wide {
	lo, carry := bits.Add64(x.lo, n, 0)
	return wide{x.hi + carry, lo}
}

func (x wide) minus(y wide) wide {
	lo, borrow := bits.Sub64(x.lo, y.lo, 0)
	return wide{x.hi - y.hi - borrow, lo}
}

// clamp returns x, but at most limit.
func (x wide) clamp(limit int64) int64 {
	if x.hi > 0 {
		return limit
	}
	return int64(min(x.lo, uint64(limit)))
}
