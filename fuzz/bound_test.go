package fuzz

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/ideal"
	"github.com/seed-181794aa/ratelimit/tb"
)

// deepest is the most debt that a call may wait for.
var deepest = big.NewRat(2*tb.MaxCapacity, 1)

func tokens(n int) *big.Rat { return big.NewRat(int64(n), 1) }

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// checkBound checks the bound of the actual costs in every interval between two slots. A little
// error is allowed. It returns the reason if the bound is violated. Without a settlement the bound
// is C1.
func checkBound(b *ideal.Bucket, all []*judged, error *big.Rat) string {
	rest := new(big.Rat).Add(b.Burst(), error)
	for _, h := range all {
		rest.Add(rest, h.unpaid)
	}
	excess := make([]*big.Rat, len(all)) // of what was used up to each slot, over what is allowed
	for i, last := range all {
		until := func(at *big.Rat) bool { return at.Cmp(last.slot) <= 0 }
		used := sum(all, func(h *judged) *big.Rat { return h.used(until) })
		low := sum(all, func(h *judged) *big.Rat { return h.tooLow(last.slot) })
		excess[i] = used.Sub(used, last.slot).Sub(used, rest).Sub(used, low)
	}
	for _, first := range all {
		before := func(at *big.Rat) bool { return at.Cmp(first.slot) < 0 }
		used := sum(all, func(h *judged) *big.Rat { return h.used(before) })
		used.Sub(used, first.slot)
		for i, last := range all {
			if last.slot.Cmp(first.slot) < 0 || excess[i].Cmp(used) <= 0 {
				continue // within the bound, even if no estimate was too high
			}
			within := func(at *big.Rat) bool { return !before(at) && at.Cmp(last.slot) <= 0 }
			start := first.slot
			for _, h := range all {
				if h.used(within).Sign() > 0 {
					start = least(start, h.taken)
				}
			}
			high := sum(all, func(h *judged) *big.Rat { return h.tooHigh(start, first.slot) })
			if over := high.Sub(excess[i], high).Sub(high, used); over.Sign() > 0 {
				return fmt.Sprintf("from %s to %s of supply, %s more than allowed are used",
					first.slot.FloatString(9), last.slot.FloatString(9), over.FloatString(9))
			}
		}
	}
	return ""
}

// sum returns the sum of the positive ones of some amounts.
func sum(all []*judged, amount func(*judged) *big.Rat) *big.Rat {
	total := new(big.Rat)
	for _, h := range all {
		if a := amount(h); a.Sign() > 0 {
			total.Add(total, a)
		}
	}
	return total
}

// used returns the tokens whose times in supply count. If the charge was settled before it could be
// used, the tokens beyond the estimate were used at the settlement.
func (h *judged) used(counts func(at *big.Rat) bool) *big.Rat {
	used := new(big.Rat)
	early := h.owed != nil && h.settled.Cmp(h.slot) < 0
	switch {
	case !counts(h.slot):
	case early:
		used.Set(h.cost)
	default:
		used.Set(h.actual)
	}
	if early && counts(h.settled) {
		used.Add(used, h.actual).Sub(used, h.cost)
	}
	return used
}

// tooHigh returns what the estimate was too high, if the charge was in flight between two times in
// supply. A reservation that was made then may be used later, although the bucket has got the
// tokens back.
func (h *judged) tooHigh(from, to *big.Rat) *big.Rat {
	if h.settled == nil || h.taken.Cmp(to) > 0 || h.settled.Cmp(from) < 0 {
		return new(big.Rat)
	}
	return new(big.Rat).Sub(h.cost, h.actual)
}

// tooLow returns what the estimate was too low, if the charge was in flight at a time in supply.
// After the settlement it returns the part of it that the bucket still owes.
func (h *judged) tooLow(at *big.Rat) *big.Rat {
	switch {
	case h.owed == nil || h.taken.Cmp(at) > 0:
		return new(big.Rat)
	case h.settled.Cmp(at) >= 0:
		return new(big.Rat).Sub(h.actual, h.cost)
	}
	return least(new(big.Rat).Sub(h.owed, at), new(big.Rat).Sub(h.actual, h.cost))
}

// The charges of each case take all that the bound allows: a token more is found.
func TestBoundIsExact(t *testing.T) {
	type charge struct{ slot, cost, taken, settled, actual, owed, unpaid int }
	for name, all := range map[string][]charge{
		"grants":                      {{2, 6, 2, -1, 6, -1, 0}, {0, 6, 0, -1, 6, -1, 0}},
		"too high in flight":          {{0, 8, 0, 5, 0, -1, 0}, {5, 18, 5, -1, 18, -1, 0}},
		"too high, and settled":       {{0, 8, 0, 4, 0, -1, 0}, {5, 10, 5, -1, 10, -1, 0}},
		"reserved while too high":     {{0, 8, 0, 4, 0, -1, 0}, {5, 18, 3, -1, 18, -1, 0}},
		"too low, and not paid by 25": {{0, 1, 0, 20, 30, 30, 0}, {25, 10, 25, -1, 10, -1, 0}},
		"settled before its slot":     {{10, 4, 0, 5, 12, 12, 0}, {0, 10, 0, -1, 10, -1, 0}},
		"unpaid":                      {{0, 1, 0, 0, 40, 11, 29}, {1, 10, 1, -1, 10, -1, 0}},
	} {
		var charges []*judged
		for _, c := range all {
			h := &judged{
				slot: tokens(c.slot), cost: tokens(c.cost), taken: tokens(c.taken),
				actual: tokens(c.actual), unpaid: tokens(c.unpaid),
			}
			if c.settled >= 0 {
				h.settled = tokens(c.settled)
			}
			if c.owed >= 0 {
				h.owed = tokens(c.owed)
			}
			charges = append(charges, h)
		}
		b, token := ideal.New(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}), tokens(1)
		if why := checkBound(b, charges, tokens(0)); why != "" {
			t.Errorf("%s: %s", name, why)
		}
		more := charges[len(charges)-1]
		more.cost.Add(more.cost, token)
		more.actual.Add(more.actual, token)
		if checkBound(b, charges, tokens(0)) == "" || checkBound(b, charges, token) != "" {
			t.Errorf("%s: a token more is not found, or is more than one", name)
		}
	}
}
