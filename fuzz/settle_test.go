package fuzz

import (
	"fmt"
	"math/big"
)

// settle settles a charge with an actual cost. It returns the reason if the tokens that could not
// be charged are not the tokens of the ideal bucket.
func (j *judge) settle(c call) string {
	if len(j.charges) == 0 {
		return ""
	}
	h := j.charges[len(j.charges)-1-c.held%len(j.charges)]
	if h.settled != nil {
		return ""
	}
	n := int64(max(0, c.n)) * int64(1+c.held)
	before := j.limiter.Stats().Unpaid
	if err := h.Settle(float64(n) / 10); err != nil {
		return err.Error()
	}
	b, unpaid := j.buckets[h.key], new(big.Rat)
	h.actual, h.settled = big.NewRat(n, 10), b.Counts(*j.now)
	h.unpaid.SetFloat64(j.limiter.Stats().Unpaid - before)
	if more := new(big.Rat).Sub(h.actual, h.cost); more.Sign() > 0 {
		unpaid = b.Settle(*j.now, more)
		h.owed = b.Slot()
	} else {
		b.Give(*j.now, more.Neg(more))
	}
	if off := new(big.Rat).Sub(unpaid, h.unpaid); off.Abs(off).Cmp(b.Error()) > 0 {
		return fmt.Sprintf("%s of %v instead of %v are not charged, want %s",
			h.unpaid.FloatString(9), h.actual, h.cost, unpaid.FloatString(9))
	}
	return ""
}

func (j *judge) settles() bool {
	for _, h := range j.charges {
		if h.settled != nil {
			return true
		}
	}
	return false
}

// checkSettled checks the bound of the actual costs in every interval between two slots. It
// returns the reason if the bound is violated.
func (j *judge) checkSettled(key string) string {
	var all []*judged
	rest := j.buckets[key].Burst()
	for _, h := range j.charges {
		if h.key == key {
			all = append(all, h)
			rest.Add(rest, h.unpaid)
		}
	}
	for _, first := range all {
		for _, last := range all {
			if last.slot.Cmp(first.slot) < 0 {
				continue
			}
			bound := new(big.Rat).Sub(last.slot, first.slot)
			start := first.slot
			for _, h := range all {
				if h.used(first.slot, last.slot).Sign() > 0 {
					start = least(start, h.taken)
				}
			}
			bound.Add(bound, rest)
			high := sum(all, func(h *judged) *big.Rat { return h.tooHigh(start, first.slot) })
			low := sum(all, func(h *judged) *big.Rat { return h.tooLow(last.slot) })
			bound.Add(bound, high).Add(bound, low)
			used := sum(all, func(h *judged) *big.Rat { return h.used(first.slot, last.slot) })
			if used.Cmp(bound) > 0 {
				return "used " + between(used, first.slot, last.slot, bound)
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

// used returns the tokens that were used between two times in supply. If the charge was settled
// before it could be used, the tokens beyond the estimate count at the settlement.
func (h *judged) used(from, to *big.Rat) *big.Rat {
	within := func(x *big.Rat) bool { return x.Cmp(from) >= 0 && x.Cmp(to) <= 0 }
	used := new(big.Rat)
	if h.owed == nil || h.settled.Cmp(h.slot) >= 0 {
		if within(h.slot) {
			used.Set(h.actual)
		}
		return used
	}
	if within(h.slot) {
		used.Set(h.cost)
	}
	if within(h.settled) {
		used.Add(used, new(big.Rat).Sub(h.actual, h.cost))
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
