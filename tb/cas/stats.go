package cas

import (
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/tb"
)

func (e *evictor) stats(keys int) tb.Stats {
	return tb.Stats{
		Keys:          keys,
		EvictedFull:   e.evictedFull,
		EvictedInDebt: e.evictedInDebt,
		Forgiven:      float64(e.forgiven) / maxScale,
		RefusedNew:    e.refused.Load(),
	}
}

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
