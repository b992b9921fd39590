package cas

import (
	"math"

	"github.com/seed-181794aa/ratelimit/tb"
)

// mostSettled is the most units of an actual cost. A greater one counts as so many.
const mostSettled = 1 << 52

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

// beyond returns the units of an actual cost beyond those of an estimate, and the other way round.
func (m *layout) beyond(actual, estimate float64) (more, less uint64) {
	a := m.actualUnits(actual)
	e, _ := m.unitsOfCost(estimate)
	return a - min(a, e), e - min(a, e)
}

// settle corrects a grant that was charged with an estimate. It gives back what was too much, or
// charges what was too little.
func settle[H home](h H, estimate, actual float64) {
	t := h.now()
	s := h.shared()
	c := h.load()
	m := h.layout()
	s.settled.Add(m.micros(m.actualUnits(actual)))
	more, less := m.beyond(actual, estimate)
	if less > 0 {
		refund(h, t, estimate, actual)
		return
	}
	if more == 0 {
		return
	}
	want := terms{
		amount: amount{tokens: actual, part: estimate},
		debt:   oneCapacity, within: tb.Never, rest: true,
	}
	o, err := spend(h, c, t, want)
	if err != nil || !o.Allowed {
		s.unpaid.Add(m.micros(more))
		return
	}
	more, _ = o.layout.beyond(actual, estimate)
	s.unpaid.Add(o.layout.micros(more - o.charged))
}

// refund gives a bucket back at t what an estimate was above the actual cost. A bucket that is no
// longer in the table gets nothing: a new one is full.
func refund[H home](h H, t uint64, estimate, actual float64) {
	for {
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
		base, seen := h.shared().view(m, c.base, word, t)
		own := m.refund(base, seen, m.positionAt(t), units)
		delta := m.since(base, own.position)
		switch {
		case base == c.base && !isSealed(word) && own.blocks >= base && m.fits(delta):
			if c.word.CompareAndSwap(word, m.pack(delta, own.deficit)) {
				return
			}
		case !isSealed(word):
			c.word.CompareAndSwap(word, word|sealBit)
		default:
			base, next := m.cellOf(own, t)
			if h.replace(c, m, base, next) != nil {
				return
			}
		}
	}
}

// refund returns the balance of a bucket that gets units back at p. They first pay its debt, which
// moves its slot towards p. The rest is put into the bucket.
func (m *layout) refund(base, word uint64, p position, units uint64) balance {
	b := m.balanceOf(base, word)
	if b.deficit <= m.capacity {
		b.deficit -= min(b.deficit, units)
		return b
	}
	delta, _ := m.unpack(word)
	debt := m.until(base, delta+1, p)
	back := min(units, debt)
	if units < debt {
		back++ // the word has the unit before the slot
	} else {
		b.deficit = m.capacity - min(m.capacity, units-debt)
	}
	b.position = m.positionOf(m.unitsAfter(m.before(base, delta+1, back)))
	return b
}

// micros returns units in millionths of a token.
func (m *layout) micros(units uint64) uint64 { return units * (maxScale / m.scale) }

// addTo adds the counts of reservations to the statistics of the table.
func (s *limits) addTo(stats *tb.Stats) {
	stats.Reservations = s.reservations.Load()
	stats.Cancellations = s.cancellations.Load()
	stats.Settled = float64(s.settled.Load()) / maxScale
	stats.Unpaid = float64(s.unpaid.Load()) / maxScale
}
