package cas

import (
	"github.com/seed-181794aa/ratelimit/internal/unit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// settle corrects a grant that was charged with an estimate. It gives back what was too much, or
// charges what was too little.
func settle[H home](h H, estimate, actual float64) {
	t := h.now()
	s := h.shared()
	c := h.load()
	m := h.layoutOf(c)
	s.settled.Add(unit.Settled(actual, m.scale), m.scale)
	more, less := m.beyond(actual, estimate)
	if less > 0 {
		refund(h, t, estimate, actual)
		return
	}
	if more == 0 {
		return
	}
	want := request{tokens: actual, estimate: estimate, within: tb.Never, partial: true}
	o, err := spend(h, c, t, want)
	if err != nil || !o.Allowed {
		s.unpaid.Add(more, m.scale)
		return
	}
	more, _ = o.layout.beyond(actual, estimate)
	s.unpaid.Add(more-o.charged, o.layout.scale)
}

// refund gives a bucket back at t what an estimate was above the actual cost. A bucket that is no
// longer in the table gets nothing: a new one is full.
func refund[H home](h H, t uint64, estimate, actual float64) {
	visit(h, h.load(), t, func(m *layout, _ *cell, has balance) (balance, bool) {
		_, units := m.beyond(actual, estimate)
		return m.refund(has, units, m.supply.at(t)), true
	})
}

// refund returns the balance of a bucket that gets units back at now. They first pay its debt,
// which moves its slot towards now. The rest is put into the bucket.
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
