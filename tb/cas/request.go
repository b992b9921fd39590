package cas

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// request is what a call asks of a bucket.
type request struct {
	tokens   float64
	estimate float64       // of a settlement: the tokens that were charged before
	within   time.Duration // the longest delay; 0 or less takes at once, or not at all
	deep     bool          // the debt may be maxDebt, and not only one capacity
	partial  bool          // as many of the tokens as the debt allows, and always granted
}

// maxDebt is the most tokens that calls of Wait may put a bucket into debt: two of the largest
// capacities.
const maxDebt = 2 * tb.MaxCapacity

// debt returns the most units that the call may put the bucket into debt.
func (r *request) debt(m *layout) uint64 {
	if r.deep {
		return maxDebt * m.scale
	}
	return m.capacity
}

// cost returns what the call asks for in units of m, or, unless it is partial, more than the
// capacity if that is above it.
func (r *request) cost(m *layout) uint64 {
	if r.partial {
		more, _ := m.beyond(r.tokens, r.estimate)
		return more
	}
	return m.unitsOf(r.tokens)
}

// result is what a call gets.
type result struct {
	tb.Decision
	delay   time.Duration // until the tokens may be used
	charged uint64        // units, if granted
	layout  *layout       // of these units
	receipt receipt       // if granted
}

// decide returns what a call at t on a bucket with balance b gets, and the balance that a grant
// leaves. If the bucket cannot pay at once, a call that may wait moves the bucket's own time to its
// slot. There the bucket can pay, and is then empty. The balance holds the unit before the slot and
// a deficit of the capacity and one unit, which marks a bucket in debt.
func (m *layout) decide(b balance, t uint64, want *request) (balance, result) {
	now := m.supply.at(t)
	b = b.refilled(now)
	o := result{layout: m, charged: want.cost(m)}
	if want.partial {
		most := m.capacity + want.debt(m)
		o.charged = min(o.charged, most-min(most, b.missing(now)))
	}
	after := balance{b.time, b.deficit + o.charged}
	switch {
	case after.deficit <= m.capacity:
		o.Decision = m.grant(after.deficit)
		return after, o
	case want.within <= 0 || o.charged > m.capacity && !want.partial:
		o.Decision = m.refusal(after, t, o.charged)
		o.delay = o.RetryAfter
		return b, o
	}
	slot := after.slot(m)
	o.delay = m.waitFor(slot, t)
	tooDeep := slot.after(now) > want.debt(m)
	switch {
	case !tooDeep && o.delay <= want.within && o.delay < tb.Never:
		o.Decision = m.grant(m.capacity)
		return balance{slot.minus(1), m.capacity + 1}, o
	case want.partial: // the clock ends before the slot, or the debt is already deeper
		o.Decision, o.charged = m.grant(min(b.deficit, m.capacity)), 0
		return b, o
	}
	o.Remaining = m.tokensIn(m.capacity - min(m.capacity, b.deficit))
	if o.RetryAfter = o.delay; o.delay < tb.Never {
		// The same call is granted once the delay is short enough and the debt small enough.
		o.RetryAfter -= min(o.delay, want.within)
		if tooDeep {
			o.RetryAfter = max(o.RetryAfter, m.waitFor(slot.minus(want.debt(m)), t))
		}
	}
	return b, o
}
