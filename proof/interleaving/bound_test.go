package interleaving

import (
	"fmt"
	"math"

	"github.com/seed-181794aa/ratelimit/proof/modelcheck/registry"
	"github.com/seed-181794aa/ratelimit/tb"
)

// tally checks C1 without tb/mutex: it counts the tokens that callers were granted and kept.
type tally struct {
	kept     map[string][]*use  // by key
	addition map[string]float64 // tokens that resets add to the bound, by key
	latest   float64            // reading, in seconds
	until    float64            // the end of the latest hold
	changes  []change
	gives    bool // a Cancel or Settle may give back less than the tokens that are not used
	limiter  registry.Limiter
}

// use is the use of tokens at a time, in seconds. A reservation counts at its slot. Tokens beyond
// an estimate were used too early, so they only count in the sum of all.
type use struct {
	at, tokens float64
	corrected  bool // by Cancel or Settle
}

// change is a limit from a time on.
type change struct {
	at    float64
	limit tb.Limit
}

func newTally(l registry.Limiter, s *scenario) *tally {
	y := &tally{
		kept: make(map[string][]*use), addition: make(map[string]float64),
		changes: []change{{0, limits[0]}}, limiter: l,
	}
	for _, l := range s.tierLimits() { // of which the greatest counts
		y.changes = append(y.changes, change{0, l})
	}
	return y
}

// called records that p makes c.
func (y *tally) called(c call, p *client) {
	y.latest = max(y.latest, c.at)
	switch c.op {
	case reset:
		y.addition[c.key] += float64(2 * y.capacity()) // it forgives a debt, too
	case hold:
		y.until = max(y.until, c.at+float64(c.n))
	case setLimit, setTier:
		y.changes = append(y.changes, change{c.at, limits[c.n]})
	case cancel, settle:
		y.gives, p.settles = true, nil
		u := p.uses[c.key]
		switch {
		case u == nil || u.corrected:
			return
		case c.op == settle:
			u.tokens = min(u.tokens, float64(c.n)) // more is counted when it is charged
			p.settles = u
		default:
			u.tokens = 0
		}
		u.corrected = true
	}
}

// returned records the answer a of p's call c.
func (y *tally) returned(c call, p *client, a answer) {
	switch {
	case c.op == settle && p.settles != nil:
		more := float64(c.n) - p.settles.tokens
		y.kept[c.key] = append(y.kept[c.key], &use{math.Inf(1), more, true})
		return
	case !a.Allowed || c.looks():
		return
	}
	for i, k := range c.keys() {
		u := &use{at: max(y.latest, c.at+a.delays[i].Seconds()), tokens: float64(c.n)}
		y.kept[k] = append(y.kept[k], u)
		if c.op == reserve {
			p.uses[k] = u
		}
	}
}

// capacity returns the greatest capacity so far.
func (y *tally) capacity() (most int) {
	for _, c := range y.changes {
		most = max(most, c.limit.Capacity)
	}
	return most
}

// supply returns the most tokens that are supplied by a time. After a change, a call that was under
// way may still be decided by the limit before it. So the greater rate counts.
func (y *tally) supply(until float64) (tokens float64) {
	var rate, since float64
	for _, c := range y.changes {
		at := min(max(since, c.at), until)
		tokens += rate * (at - since)
		rate, since = max(rate, float64(c.limit.Tokens)/c.limit.Per.Seconds()), at
	}
	return tokens + rate*(until-since)
}

// bound returns the most tokens of a key by a time.
func (y *tally) bound(key string, until float64) float64 {
	return float64(y.capacity()) + y.supply(until) + y.addition[key] +
		y.limiter.Forgiven() + y.limiter.Unpaid()
}

// checkBound returns an error if C1 does not hold from the start until now, or would not hold if a
// caller now took all available tokens. It also checks the time from the start until each slot.
func (y *tally) checkBound() error {
	for k, uses := range y.kept {
		var kept float64
		for _, u := range uses {
			kept += u.tokens
		}
		bound := y.bound(k, y.latest)
		if left := y.limiter.Available(k, timeOf(y.latest)); kept+left > bound {
			return fmt.Errorf("C1: key %s was granted %v and has %v left, and the bound is %v",
				k, kept, left, bound)
		}
		for _, u := range uses {
			var used float64
			for _, v := range uses {
				if v.at <= u.at {
					used += v.tokens
				}
			}
			if bound := y.bound(k, u.at); used > bound {
				return fmt.Errorf("C1: key %s may use %v until %vs, and the bound is %v",
					k, used, u.at, bound)
			}
		}
	}
	return nil
}

// checkRefill returns an error if a bucket would not be refilled by the time in which the slowest
// rate so far supplies all that callers were granted or may just be granted: C2, also after changes
// of the limit. The bucket then has at least the smallest capacity so far.
func (y *tally) checkRefill() error {
	least, slowest := y.capacity(), math.Inf(1)
	for _, c := range y.changes {
		least = min(least, c.limit.Capacity)
		slowest = min(slowest, float64(c.limit.Tokens)/c.limit.Per.Seconds())
	}
	for k, uses := range y.kept {
		tokens := float64(10 * y.capacity())
		for _, u := range uses {
			tokens += u.tokens
		}
		full := timeOf(max(y.latest, y.until) + tokens/slowest)
		left := y.limiter.Available(k, full)
		if y.limiter.Has(k) && left < float64(least) {
			return fmt.Errorf("C2: key %s was granted %v tokens until %vs, and has only %v at %v",
				k, tokens, y.latest, left, full)
		}
	}
	return nil
}

// checkNothingLost returns an error if tokens are missing in the end. It checks schedules in
// which the clock stands still: the tokens that were not granted are still available.
func (y *tally) checkNothingLost() error {
	if y.latest > 0 || y.until > 0 || y.gives || len(y.addition) > 0 || len(y.changes) > 1 ||
		y.limiter.Forgiven() > 0 {
		return nil
	}
	for k, uses := range y.kept {
		var kept float64
		for _, u := range uses {
			kept += u.tokens
		}
		left := y.limiter.Available(k, timeOf(0))
		if kept+left != float64(limits[0].Capacity) {
			return fmt.Errorf("key %s was granted %v of %d and has %v left",
				k, kept, limits[0].Capacity, left)
		}
	}
	return nil
}
