package tb

import (
	"fmt"
	"math"
	"time"
)

// State is what a bucket has at one time. Snapshot yields states and Restore takes them, so that a
// restart forgets no debt.
type State struct {
	// Tokens is the number of tokens in the bucket, fractions included, and negative if the bucket
	// is in debt. A deeper debt than 2³² tokens, which only a late reading shows, is cut to that.
	Tokens float64
	// At is the wall clock time at which the bucket has them.
	At time.Time
	// Held is the wall clock time until which a Hold lasts, or zero. Then Tokens is 0, or negative
	// by the debt behind the hold: the bucket has them at Held.
	Held time.Time
	// Tier is the tier of the bucket, or 0 in a limiter without tiers.
	Tier int
}

// Validate returns an error if no bucket can have the state: Tokens must be from −2³² to
// MaxCapacity, and At must not be zero. In a held bucket Tokens is at most 0 and Held after At.
func (s State) Validate() error {
	switch {
	case !(math.Abs(s.Tokens) <= 1<<32) || s.Tokens > MaxCapacity:
		return &ConfigError{"Tokens", s.Tokens, fmt.Sprintf("-%d to %d", int64(1)<<32, MaxCapacity)}
	case s.At.IsZero():
		return &ConfigError{"At", s.At, "a time"}
	case s.Held.IsZero():
		return nil
	case s.Tokens > 0:
		return &ConfigError{"Tokens", s.Tokens, "at most 0 in a bucket that is held"}
	case !s.Held.After(s.At):
		return &ConfigError{"Held", s.Held, "a time after At"}
	}
	return nil
}
