package replay

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Rate is a refill rate as a person writes it: 5, 2.5/s, 300/m, 1/24h. It is kept as
// the fraction it is, in the terms it was given in: 300/m is {300, 1m}.
type Rate struct {
	Tokens int64
	Per    time.Duration
	text   string
}

// wantRate says what a rate looks like.
const wantRate = "want tokens per time such as 5, 2.5/s, 300/m, 100/h, 1/d or 1/24h," +
	" from 1 in 292 years to 1 a nanosecond"

// String returns the rate as it was written, always with its unit.
func (r Rate) String() string { return r.text }

// limit returns the limit of that rate and burst.
func (r Rate) limit(burst int) tb.Limit {
	return tb.Limit{Capacity: burst, Tokens: r.Tokens, Per: r.Per}
}

// UnmarshalText parses a rate. The number is a decimal; without a unit it is per
// second.
func (r *Rate) UnmarshalText(text []byte) error {
	number, unit, ok := strings.Cut(string(text), "/")
	if !ok {
		unit = "s"
	}
	tokens, okTokens := decimal(number)
	per, okPer := period(unit)
	if !okTokens || !okPer || !r.set(tokens, per) {
		return fmt.Errorf("rate %q: %s", text, wantRate)
	}
	r.text = number + "/" + unit
	return nil
}

// set makes r tokens every per, if that is in range. What is not a whole number of tokens
// becomes one by taking as many periods together: 2.5 a second is 5 every 2 s.
func (r *Rate) set(tokens *big.Rat, per time.Duration) bool {
	long := new(big.Int).Mul(tokens.Denom(), big.NewInt(int64(per)))
	if !tokens.Num().IsInt64() || !long.IsInt64() {
		return false
	}
	r.Tokens, r.Per = tokens.Num().Int64(), time.Duration(long.Int64())
	return r.limit(1).Validate() == nil
}

// decimal parses digits with an optional point, exactly: 0.1 is one tenth, which no float
// is. Exponents, signs and fractions are not rates that a person would write.
func decimal(s string) (*big.Rat, bool) {
	if s == "" || len(s) > 40 || strings.Trim(s, "0123456789.") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// period parses what stands behind the slash: a unit, or a duration such as 24h or
// 1h30m.
func period(s string) (time.Duration, bool) {
	if d, ok := units[s]; ok {
		return d, true
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d > 0
}

// units are the times that need no number. A day is 24 hours: the clock of a limiter
// knows no others.
var units = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond,
	"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}
