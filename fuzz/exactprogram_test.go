package fuzz

import (
	"math"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// earliest and latest bound the readings: the clock of a limiter whose first reading is
// time.Unix(0, 0) represents all readings between them.
var (
	earliest = time.Unix(0, 0).Add(-100 * 365 * 24 * time.Hour)
	latest   = time.Unix(0, 0).Add(100 * 365 * 24 * time.Hour)
)

// exactProgram changes p so that an ideal bucket can run it. Costs, and the tokens that keep keeps,
// are tenths of a token if a tenth is a whole number of units. Readings are within the range of the
// clock. No key is evicted in debt. Readings are late only if the program has one key, and only
// allows and reserves: with several keys, a full bucket that was evicted comes back at a time that
// depends on the readings of other keys.
func exactProgram(p program) program {
	p.maxKeys = 100
	p.calls = p.calls[:min(len(p.calls), 45)]
	keys := make(map[string]bool)
	inOrder, large := false, p.limit.Capacity > 8_388_607
	for _, c := range p.calls {
		keys[c.key] = true
		large = large || c.limit.Capacity > 8_388_607 // Settle rounds an earlier cost
		inOrder = inOrder || c.op == settle || c.op == setLimit || len(keys) > 1
	}
	now, l := time.Unix(0, 0), p.limit
	for i := range p.calls {
		c := &p.calls[i]
		if inOrder && c.step < 0 {
			c.step = -c.step
		}
		if then := now.Add(c.step); then.Before(earliest) || then.After(latest) {
			c.step = 0
		}
		now = now.Add(c.step)
		if c.op == settle && slow(l) {
			c.op = allowAt
		}
		if c.op == setLimit {
			if slow(c.limit) {
				c.limit.Tokens, c.limit.Per = 10, time.Second
			}
			l = c.limit
		}
		if c.keep = math.Floor(min(max(c.keep, 0), 1<<30)); math.IsNaN(c.keep) {
			c.keep = 1
		}
		if large || c.op == allowN {
			c.n *= 10
			c.keep *= 10
		}
	}
	return p
}

// slow reports whether the clock can end before a debt of one capacity is paid.
func slow(l tb.Limit) bool {
	return 2*float64(l.Capacity)*float64(l.Per)/float64(l.Tokens) > float64(100*365*24*time.Hour)
}
