package tb

import (
	"math"
	"strconv"
	"time"
)

// MaxCapacity is the largest capacity of a bucket, in tokens.
const MaxCapacity = 1 << 30

// Limit is a burst of Capacity tokens, refilled continuously at Tokens every Per. The rate stays
// an exact fraction: {10, 3, time.Second} refills exactly three tokens a second.
type Limit struct {
	Capacity int           // 1 to MaxCapacity
	Tokens   int64         // at least 1, and at most one for each nanosecond of Per
	Per      time.Duration // at least 1 ns
}

// Validate returns a *ConfigError if the limit is out of range.
func (l Limit) Validate() error {
	switch {
	case l.Capacity < 1 || l.Capacity > MaxCapacity:
		return &ConfigError{"Capacity", l.Capacity, "1 to " + strconv.Itoa(MaxCapacity)}
	case l.Per < 1:
		return &ConfigError{"Per", l.Per, "at least 1ns"}
	case l.Tokens < 1 || l.Tokens > int64(l.Per):
		return &ConfigError{"Tokens", l.Tokens,
			"1 to " + strconv.FormatInt(int64(l.Per), 10) + " per " + l.Per.String() +
				" (at most one a nanosecond)"}
	}
	return nil
}

// Share returns the limit of one of n replicas that cannot talk to each other: its bucket holds 1/n
// of Capacity, rounded down to tokens, and is refilled at 1/n of the rate. So together they grant
// at most what l grants. A cost above the share of Capacity is refused by each of them. Share
// returns a *ConfigError if l is out of range, if n is not 1 to Capacity, or if Per times n is
// above 292 years.
func (l Limit) Share(n int) (Limit, error) {
	if err := l.Validate(); err != nil {
		return Limit{}, err
	}
	if most := int(min(int64(l.Capacity), math.MaxInt64/int64(l.Per))); n < 1 || n > most {
		return Limit{}, &ConfigError{"n", n,
			"1 to " + strconv.Itoa(most) + ", so that each replica has a token of Capacity"}
	}
	l.Capacity /= n
	l.Per *= time.Duration(n)
	return l, nil
}

// LimitPerSecond returns the limit with the given burst and refill rate in tokens a second. The
// rate becomes the simplest fraction that rounds to that float64: 0.1 is one token in ten
// seconds, 1.0/86400 is one a day. It returns a *ConfigError if the capacity is not 1 to
// MaxCapacity, or the rate is not from one token in 292 years to 10⁹ tokens a second.
func LimitPerSecond(capacity int, refillPerSec float64) (Limit, error) {
	const slowest = float64(time.Second) / math.MaxInt64
	if !(refillPerSec >= slowest && refillPerSec <= 1e9) { // NaN fails both
		return Limit{}, &ConfigError{"refillPerSec", refillPerSec,
			"one token in 292 years (1.0843e-10 a second) to 1e+09 tokens a second"}
	}
	tokens, per := fraction(refillPerSec)
	l := Limit{Capacity: capacity, Tokens: tokens, Per: per}
	return l, l.Validate()
}
