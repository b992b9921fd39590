package policy

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// unreadLimit is the limit of a rule whose own limit could not be read, which is an error
// already.
var unreadLimit = tb.Limit{Capacity: -1}

// limit is the rate and the burst. A limit in which one of them has an error is unreadLimit.
func (o *object) limit(l *tb.Limit, smallBurst bool) {
	if o.writes {
		o.put("tokens_per_second", rateNumber(*l), true)
		o.put("burst", l.Capacity, true)
		return
	}
	name := "tokens_per_second"
	switch {
	case o.has(name) && o.has("rps"):
		o.number("rps", above0)
	case o.has("rps"):
		name = "rps"
	case !o.has(name):
		o.add(name, "is missing, and so is its alias rps")
	}
	rate := o.number(name, above0)
	capacity, ok := o.burst(rate, smallBurst)
	if rate == nil {
		return
	}
	limit, err := perDuration(rate)
	if err != nil {
		o.add(name, "must be from 1 token in 292 years to 1e9 tokens a second (got %s)", short(rate))
	} else if ok {
		limit.Capacity = capacity
		*l = limit
	}
}

// burst reads the capacity. The rate is nil if it could not be read. A rule must have a burst of a
// second at least, unless it delays, to even out requests, or its rate adapts.
func (o *object) burst(rate *big.Rat, small bool) (capacity int, ok bool) {
	o.require("burst")
	x := o.number("burst", anyNumber)
	if x == nil {
		return 0, false
	}
	got, before := short(x), len(o.errs)
	if !x.IsInt() {
		o.add("burst", "must be a whole number of tokens (got %s)", got)
	}
	switch {
	case rate != nil && x.Cmp(rate) < 0 && !small:
		o.add("burst", "must be >= tokens_per_second (got %s, want >= %s)", got, short(rate))
	case x.Sign() <= 0:
		o.add("burst", "must be > 0 (got %s)", got)
	case x.Cmp(big.NewRat(tb.MaxCapacity, 1)) > 0:
		o.add("burst", "must be at most %d (got %s)", tb.MaxCapacity, got)
	}
	return int(x.Num().Int64()), len(o.errs) == before
}

// exactDecimals is how many decimals a rate has at most if it is exact.
const exactDecimals = 9

// perDuration returns a limit without a capacity. Its rate in tokens a second is the decimal of the
// document if that has up to 9 decimals, and otherwise the simplest fraction that is the same
// float64: 0.3333333333333333 is a third.
func perDuration(rate *big.Rat) (tb.Limit, error) {
	ns := new(big.Int).Mul(rate.Denom(), big.NewInt(int64(time.Second)))
	if decimals, _ := rate.FloatPrec(); decimals <= exactDecimals && rate.Num().Cmp(ns) <= 0 {
		return tb.Limit{Tokens: rate.Num().Int64(), Per: time.Duration(ns.Int64())}, nil
	}
	f, _ := rate.Float64()
	return tb.LimitPerSecond(1, f)
}

// rateNumber returns a number of which perDuration makes the rate of a limit: the rate itself if it
// has few decimals, or else the nearest float64. It adds decimals to a float64 that has few ones,
// because perDuration would take it for the rate itself.
func rateNumber(l tb.Limit) json.Number {
	if l.Per <= 0 { // which is not valid
		return "0"
	}
	rate := big.NewRat(l.Tokens, int64(l.Per))
	rate.Mul(rate, big.NewRat(int64(time.Second), 1))
	if decimals, exact := rate.FloatPrec(); exact && decimals <= exactDecimals {
		return json.Number(rate.FloatString(decimals))
	}
	f, _ := rate.Float64()
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if _, decimals, _ := strings.Cut(text, "."); len(decimals) <= exactDecimals {
		text = rate.FloatString(2 * exactDecimals)
	}
	return json.Number(text)
}
