package cas

import (
	"math"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/tb"
)

// mostSettled is the most units of an actual cost. A greater one counts as mostSettled.
const mostSettled = 1 << 52

// checkCost returns tb.ErrInvalidCost unless cost is positive and finite.
func checkCost(cost float64) error {
	if !(cost > 0) || math.IsInf(cost, 1) { // NaN is not above 0
		return tb.ErrInvalidCost
	}
	return nil
}

// checkActual returns tb.ErrInvalidCost unless actual is a cost or 0.
func checkActual(actual float64) error {
	if !(actual >= 0) || math.IsInf(actual, 1) {
		return tb.ErrInvalidCost
	}
	return nil
}

// actualUnits returns an actual cost in units, rounded up.
func (m *layout) actualUnits(actual float64) uint64 {
	if actual >= mostSettled/float64(m.scale) {
		return mostSettled
	}
	return m.roundUp(actual)
}

// beyond returns the units of an actual cost beyond the units of an estimate, and the reverse.
func (m *layout) beyond(actual, estimate float64) (more, less uint64) {
	a := m.actualUnits(actual)
	e := m.actualUnits(estimate) // may be above a new capacity
	return a - min(a, e), e - min(a, e)
}

// settle corrects a grant that was charged with an estimate. It gives back what was too much, or
// charges what was too little.
func settle[H home](h H, estimate, actual float64) {
	t := h.now()
	s := h.shared()
	c := h.load()
	m := h.layout()
	s.settled.add(m, m.actualUnits(actual))
	more, less := m.beyond(actual, estimate)
	if less > 0 {
		refund(h, t, estimate, actual)
		return
	}
	if more == 0 {
		return
	}
	want := request{
		tokens: actual, rest: true, charged: estimate, debt: oneCapacity, within: tb.Never,
	}
	o, err := spend(h, c, t, want)
	if err != nil || !o.Allowed {
		s.unpaid.add(m, more)
		return
	}
	more, _ = o.layout.beyond(actual, estimate)
	s.unpaid.add(o.layout, more-o.charged)
}

// refund gives a bucket back at t what an estimate was above the actual cost. A bucket that is no
// longer in the table gets nothing: a new one is full.
func refund[H home](h H, t uint64, estimate, actual float64) {
	for done := false; !done; {
		c := h.load()
		m := h.layout()
		if c == nil {
			return
		}
		word := c.word.Load()
		if word == evicted {
			return
		}
		_, units := m.beyond(actual, estimate)
		has := h.shared().view(m, c, word, t)
		_, done = swap(h, m, c, word, t, has, m.refund(has, units, m.supply.at(t)))
	}
}

// refund returns the balance of a bucket that gets units back at now. They first pay its debt, which
// moves its slot towards now. The rest is put into the bucket.
func (m *layout) refund(b balance, units uint64, now wide) balance {
	if b.deficit <= m.capacity {
		return balance{b.time, b.deficit - min(b.deficit, units)}
	}
	slot := b.slot(m)
	debt := slot.after(now)
	slot = slot.minus(min(units, debt))
	if units >= debt {
		return balance{slot, m.capacity - min(m.capacity, units-debt)}
	}
	return balance{slot.minus(1), b.deficit}
}

// micros returns units in millionths of a token.
func (m *layout) micros(units uint64) uint64 { return units * (maxScale / m.scale) }

// tokenSum is a number of tokens: whole ones, and parts in millionths. One number of millionths
// could overflow.
type tokenSum struct{ whole, parts atomic.Uint64 }

func (s *tokenSum) add(m *layout, units uint64) {
	s.whole.Add(units / m.scale)
	if part := units % m.scale; part > 0 {
		s.parts.Add(m.micros(part))
	}
}

func (s *tokenSum) sum() float64 {
	return float64(s.whole.Load()) + float64(s.parts.Load())/maxScale
}

// addTo adds the counts of reservations to the statistics of the table.
func (s *limits) addTo(stats *tb.Stats) {
	stats.Reservations = s.reservations.Load()
	stats.Cancellations = s.cancellations.Load()
	stats.Settled = s.settled.sum()
	stats.Unpaid = s.unpaid.sum()
}
