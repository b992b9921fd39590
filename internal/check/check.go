// Package check checks the arguments of calls on a bucket, for every limiter of this repository.
package check

import (
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/unit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Cost returns tb.ErrInvalidCost unless cost is positive and finite.
func Cost(cost float64) error {
	if !(cost > 0) || math.IsInf(cost, 1) { // NaN is not above 0
		return tb.ErrInvalidCost
	}
	return nil
}

// Actual returns tb.ErrInvalidCost unless a number of tokens is an actual cost: a cost, or 0.
func Actual(tokens float64) error {
	if !unit.IsActual(tokens) {
		return tb.ErrInvalidCost
	}
	return nil
}

// Charge checks what a charge is told beside its cost: to wait, or to keep tokens and to hold its
// bucket. The first error makes the charge inert for good, and Err is why, or nil.
type Charge struct{ Err error }

// MayWait reports whether a charge may wait for a time. guards says that it keeps tokens or holds.
func (c *Charge) MayWait(within time.Duration, guards bool) bool {
	if within < 0 {
		return c.fail(outOfRange("within", within, "0 or more"))
	}
	if within > 0 && guards {
		return c.fail(outOfRange("within", within, "0 after Keep or HoldOnRefusal"))
	}
	return true
}

// Keep reports whether a charge may keep a number of tokens. waits says that it may wait.
func (c *Charge) Keep(tokens float64, waits bool) bool {
	if err := Actual(tokens); err != nil {
		return c.fail(err)
	}
	if tokens > 0 && waits {
		return c.fail(outOfRange("keep", tokens, "0 after MayWait"))
	}
	return true
}

// HoldOnRefusal reports whether a refusal may hold the bucket for a time.
func (c *Charge) HoldOnRefusal(d time.Duration, waits bool) bool {
	if d < 0 {
		return c.fail(outOfRange("hold", d, "0 or more"))
	}
	if d > 0 && waits {
		return c.fail(outOfRange("hold", d, "0 after MayWait"))
	}
	return true
}

func (c *Charge) fail(err error) bool {
	if c.Err == nil {
		c.Err = err
	}
	return false
}

func outOfRange(field string, value any, limits string) error {
	return &tb.ConfigError{Field: field, Value: value, Range: limits}
}
