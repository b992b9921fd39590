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
	tb.Limit
	capacity int64 // units
	scale    int64 // units in a token
	tokens   uint64
	per      uint64 // nanoseconds

	from uint64 // the instant until which the supply clock shows 0
	end  uint64 // the last instant that the clock can reach

	tier  int
	begin uint64 // instant of the change that made the limit
	next  *limit // of the tier, since a change; nil if this one is its present limit
}

func newLimit(l tb.Limit, end uint64) *limit {
	scale := int64(1)
	for scale < 1_000_000 && int64(l.Capacity)*scale < 1<<23 {
		scale *= 10
	}
	return &limit{
		Limit: l, capacity: int64(l.Capacity) * scale, scale: scale,
		tokens: uint64(l.Tokens), per: uint64(l.Per), end: end,
	}
}

// unitsOf returns a positive cost in units, or more than the capacity. It rounds up the decimal
// number with the fewest digits that parses as cost.
func (l *limit) unitsOf(cost float64) int64 {
	if n := int64(cost); float64(n) == cost && n <= int64(l.Capacity) {
		return n * l.scale
	}
	return min(l.roundUp(cost), l.capacity+1)
}

// roundUp returns a number of tokens in units, at most mostSettled.
func (l *limit) roundUp(tokens float64) int64 {
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(tokens, 'g', -1, 64))
	r.Mul(r, big.NewRat(l.scale, 1))
	units := new(big.Int).Add(r.Num(), r.Denom())
	units.Sub(units, big.NewInt(1)).Quo(units, r.Denom())
	if units.Cmp(big.NewInt(mostSettled)) > 0 {
		return mostSettled
	}
	return units.Int64()
}

// level returns how full b is at now for a call that keeps a number of units.
func (l *limit) level(b *state, now uint64, keep int64) tb.Level {
	tokens, since := l.refilled(b, now)
	usable := max(0, tokens-keep)
	level := tb.Level{Tokens: float64(usable) / float64(l.scale)}
	if tokens == l.capacity {
		return level
	}
	level.NextToken = tb.Never
	if next := keep + (usable/l.scale+1)*l.scale; next <= l.capacity {
		level.NextToken = l.waitFor(now, since.plus(uint64(next-tokens)))
	}
	level.Full = l.waitFor(now, since.plus(uint64(l.capacity-tokens)))
	debt := since.above(l.supply(max(now, b.until)), mostDebt)
	if b.inDebt && debt > 0 && keep == 0 {
		level.Tokens = -float64(debt) / float64(l.scale)
	}
	return level
}

// waitFor returns the time from now until the supply clock shows x.
func (l *limit) waitFor(now uint64, x wide) time.Duration { return l.wait(now, l.timeOf(x)) }

// wait returns the time from now to then, or tb.Never if that is beyond the clock.
func (l *limit) wait(now, then uint64) time.Duration {
	if then > l.end {
		return tb.Never
	}
	return time.Duration(min(then-now, math.MaxInt64))
}

// after returns the instant that comes d after now, or the last one of the clock.
func (l *limit) after(now uint64, d time.Duration) uint64 {
	return now + min(uint64(max(0, d)), l.end-now)
}

// supply returns the units that have been supplied by instant t.
func (l *limit) supply(t uint64) wide { return l.supplied(t - min(t, l.from)) }

// supplyFrom returns supply(t) for a bucket that has had what the limits before have supplied.
func (l *limit) supplyFrom(t uint64) wide {
	if t <= l.begin {
		return wide{}
	}
	return l.supply(t)
}

// supplied returns the units that are supplied in a time. It divides twice: for whole tokens, and
// for the units in the rest.
func (l *limit) supplied(ns uint64) wide {
	tokens, rest := product(ns, l.tokens).over(l.per)
	units, _ := product(rest, uint64(l.scale)).over(l.per)
	return product(tokens, uint64(l.scale)).plus(units)
}

// timeOf returns the first t from l.from on at which supply(t) is at least x, or the last instant.
// That is, after l.from, x·per / (tokens·scale), rounded up. In steps that fit, with x = w tokens
// and u units:
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
	return l.from + min(t, math.MaxUint64-l.from)
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

func (x wide) less(y wide) bool { return x.hi < y.hi || x.hi == y.hi && x.lo < y.lo }

func (x wide) minus(y wide) wide {
	lo, borrow := bits.Sub64(x.lo, y.lo, 0)
	return wide{x.hi - y.hi - borrow, lo}
}

// above returns x less y, but at least 0 and at most a limit.
func (x wide) above(y wide, limit int64) int64 {
	if x.less(y) {
		return 0
	}
	if x = x.minus(y); x.hi > 0 {
		return limit
	}
	return int64(min(x.lo, uint64(limit)))
}
