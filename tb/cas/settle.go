package cas

import (
	"github.com/seed-181794aa/ratelimit/internal/unit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// settle corrects a grant that was charged with an estimate. It gives back what was too much, or
// charges what was too little.
func settle[H home](h H, estimate, actual float64) {
	t := h.times().read()
	s := h.shared()
	m := h.layoutOf(h.load())
	s.settled.Add(unit.Settled(actual, m.scale), m.scale)
	more, less := m.beyond(actual, estimate)
	if less > 0 {
		refund(h, t, estimate, actual)
		return
	}
	if more == 0 {
		return
	}
	want := request{kind: settles, tokens: actual, estimate: estimate, within: tb.Never}
	o, r, err := spend(h, t, want)
	if err == nil && o.Allowed {
		m = r.layout
		more, _ = m.beyond(actual, estimate)
		more -= o.charged
	}
	s.unpaid.Add(more, m.scale)
}

// refund gives a bucket back at t what an estimate was above the actual cost. A bucket that is no
// longer in the table gets nothing: a new one is full.
func refund[H home](h H, t uint64, estimate, actual float64) {
	visit(h, h.load(), t, func(m *layout, _ *cell, has balance) (balance, bool) {
		_, units := m.beyond(actual, estimate)
		return m.refund(has, units, m.supply.at(t)), true
	})
}

// giveBack undoes a grant of a number of tokens: DESIGN.md §3, and §9 for reservations.
func (r receipt) giveBack(tokens float64) {
	if r.cell.isHeld() { // so it was a reservation behind the hold
		r.cell.word.CompareAndSwap(r.after, r.before)
		return
	}
	m := r.layout
	then, deficitThen := m.unpack(r.after)
	if deficitThen > m.capacity {
		then++ // to the slot
	}
	for {
		word := r.cell.word.Load()
		if isSealed(word) {
			return
		}
		delta, deficit := m.unpack(word)
		next := r.before
		switch {
		case word == r.after && deficitThen > m.capacity:
		case deficit > m.capacity:
			return
		default:
			units := m.unitsOf(tokens)
			units -= min(units, delta-min(delta, then))
			next = m.pack(delta, deficit-min(deficit, units))
		}
		if r.cell.word.CompareAndSwap(word, next) {
			return
		}
	}
}
