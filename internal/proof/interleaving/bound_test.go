package interleaving

import (
	"fmt"

	"github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/registry"
	"github.com/seed-181794aa/ratelimit/tb"
)

// tally checks C1 by what callers were granted and have kept, without tb/mutex.
type tally struct {
	limit  tb.Limit
	kept   map[string]float64 // tokens, by key
	allow  map[string]float64 // how many more a key may have had because it was reset
	latest float64            // reading, in seconds
	l      registry.Limiter
}

func newTally(limit tb.Limit, l registry.Limiter) *tally {
	return &tally{limit, make(map[string]float64), make(map[string]float64), 0, l}
}

// begins notes a call that is made.
func (y *tally) begins(c ask) {
	y.latest = max(y.latest, c.at)
	if c.op == wipe {
		y.allow[c.key] += float64(y.limit.Capacity)
	}
}

// returns notes what a call was granted.
func (y *tally) returns(c ask, a answered) {
	if !a.Allowed || c.op == look {
		return
	}
	for _, k := range c.keys() {
		y.kept[k] += float64(c.n)
	}
}

// within returns an error if C1 does not hold from the start until now, or would not if
// somebody now took all there is.
func (y *tally) within() error {
	for k, kept := range y.kept {
		rate := float64(y.limit.Tokens) / y.limit.Per.Seconds()
		bound := float64(y.limit.Capacity) + rate*y.latest + y.allow[k] + y.l.Forgiven()
		if holds := y.l.Available(k, instant(y.latest)); kept+holds > bound {
			return fmt.Errorf("C1: key %s was granted %v and has %v, and %v is the bound",
				k, kept, holds, bound)
		}
	}
	return nil
}

// settled returns an error if tokens are missing in the end: if the clock stood still,
// what was not granted is there.
func (y *tally) settled() error {
	if y.latest > 0 || len(y.allow) > 0 || y.l.Forgiven() > 0 {
		return nil
	}
	for k, kept := range y.kept {
		if holds := y.l.Available(k, instant(0)); kept+holds != float64(y.limit.Capacity) {
			return fmt.Errorf("key %s was granted %v of %d and has %v",
				k, kept, y.limit.Capacity, holds)
		}
	}
	return nil
}
