package replay

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Rate is a refill rate as a user writes it: 5, 2.5/s, 300/m, 1/24h. It stays the fraction
// that was written: 300/m is {300, 1m}.
type Rate struct {
	Tokens int64
	Per    time.Duration
	text   string
}

const wantRate = "want tokens per time such as 5, 2.5/s, 300/m, 100/h, 1/d or 1/24h," +
	" from 1 in 292 years to 1 a nanosecond"

// String returns the rate as it was written, always with its unit.
func (r Rate) String() string { return r.text }

// MarshalText returns the same.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.text), nil }

// perSecond returns the rate in tokens a second, nearly.
func (r Rate) perSecond() float64 { return float64(r.Tokens) / r.Per.Seconds() }

func (r Rate) limit(burst int) tb.Limit {
	return tb.Limit{Capacity: burst, Tokens: r.Tokens, Per: r.Per}
}

// UnmarshalText parses a rate. The number is a decimal. The default unit is a second.
func (r *Rate) UnmarshalText(text []byte) error {
	number, unit, ok := strings.Cut(string(text), "/")
	if !ok {
		unit = "s"
	}
	tokens, okTokens := parseDecimal(number)
	per, okPer := parsePeriod(unit)
	if !okTokens || !okPer || !r.set(tokens, per) {
		return fmt.Errorf("%q: %s", text, wantRate)
	}
	r.text = number + "/" + unit
	return nil
}

// set sets r to tokens every per, and reports whether that is in range. A fraction of a
// token becomes a whole number over several periods: 2.5 a second is 5 every 2 s.
func (r *Rate) set(tokens *big.Rat, per time.Duration) bool {
	long := new(big.Int).Mul(tokens.Denom(), big.NewInt(int64(per)))
	if !tokens.Num().IsInt64() || !long.IsInt64() {
		return false
	}
	r.Tokens, r.Per = tokens.Num().Int64(), time.Duration(long.Int64())
	return r.limit(1).Validate() == nil
}

// parseDecimal parses digits with an optional point, exactly: a float64 cannot hold 0.1.
// It refuses exponents, signs and fractions.
func parseDecimal(s string) (*big.Rat, bool) {
	if s == "" || len(s) > 40 || strings.Trim(s, "0123456789.") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// parsePeriod parses a unit, or a duration such as 24h or 1h30m. A day has 24 hours.
func parsePeriod(s string) (time.Duration, bool) {
	if s == "d" {
		return day, true
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		d, err = time.ParseDuration("1" + s)
	}
	return d, err == nil && d > 0
}

// isFieldName reports whether s can name a field. Otherwise it is a misspelt number or unit.
func isFieldName(s string) bool {
	return s != "" && !strings.ContainsAny(s, "/ ") && !strings.ContainsAny(s[:1], "+-.0123456789")
}

// Share is a share of the clients in percent, as a user writes it: 0.1%.
type Share float64

// String returns the share as the user writes it.
func (s Share) String() string { return strconv.FormatFloat(float64(s), 'f', -1, 64) + "%" }

// UnmarshalText parses a percentage.
func (s *Share) UnmarshalText(text []byte) error {
	number, isPercent := strings.CutSuffix(string(text), "%")
	value, ok := parseDecimal(number)
	if ok && isPercent {
		if p, _ := value.Float64(); p <= 50 {
			*s = Share(p)
			return nil
		}
	}
	return fmt.Errorf("%q: want a percentage, 0%% to 50%%, such as 0.1%%", text)
}

// defaultRates are the rates that a suggestion tries, six in each power of ten. None is more than
// 1.7 times the one before. A person may need more than one request in ten seconds.
const defaultRates = "0.1,0.15,0.2,0.3,0.5,0.7,1,1.5,2,3,5,7,10,15,20,30,50,70"

func ratesOf(list string) (rates []Rate, err error) {
	for text := range strings.SplitSeq(list, ",") {
		var r Rate
		err = errors.Join(err, r.UnmarshalText([]byte(text)))
		rates = append(rates, r)
	}
	return rates, err
}
