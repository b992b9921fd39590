package interleaving

import (
	"fmt"

	"github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/registry"
	"github.com/seed-181794aa/ratelimit/tb"
)

// tally checks C1 without tb/mutex: it counts the tokens that callers were granted and kept.
type tally struct {
	limit    tb.Limit
	kept     map[string]float64 // tokens, by key
	addition map[string]float64 // tokens that resets add to the bound, by key
	latest   float64            // reading, in seconds
	limiter  registry.Limiter
}

func newTally(limit tb.Limit, l registry.Limiter) *tally {
	return &tally{limit, make(map[string]float64), make(map[string]float64), 0, l}
}

// called records that c is made.
func (y *tally) called(c call) {
	y.latest = max(y.latest, c.at)
	if c.op == reset {
		y.addition[c.key] += float64(y.limit.Capacity)
	}
}

// returned records the answer to c.
func (y *tally) returned(c call, a answer) {
	if !a.Allowed || c.op == peek {
		return
	}
	for _, k := range c.keys() {
		y.kept[k] += float64(c.n)
	}
}

// checkBound returns an error if C1 does not hold from the start until now, or would not hold
// if a caller now took all available tokens.
func (y *tally) checkBound() error {
	for k, kept := range y.kept {
		rate := float64(y.limit.Tokens) / y.limit.Per.Seconds()
		bound := float64(y.limit.Capacity) + rate*y.latest + y.addition[k] +
			y.limiter.Forgiven()
		if left := y.limiter.Available(k, timeOf(y.latest)); kept+left > bound {
			return fmt.Errorf("C1: key %s was granted %v and has %v left, and the bound is %v",
				k, kept, left, bound)
		}
	}
	return nil
}

// checkNothingLost returns an error if tokens are missing in the end. It checks schedules in
// which the clock stands still: the tokens that were not granted are still available.
func (y *tally) checkNothingLost() error {
	if y.latest > 0 || len(y.addition) > 0 || y.limiter.Forgiven() > 0 {
		return nil
	}
	for k, kept := range y.kept {
		if left := y.limiter.Available(k, timeOf(0)); kept+left != float64(y.limit.Capacity) {
			return fmt.Errorf("key %s was granted %v of %d and has %v left",
				k, kept, y.limit.Capacity, left)
		}
	}
	return nil
}
