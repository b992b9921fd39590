package cas

import "github.com/seed-181794aa/ratelimit/tb"

func (e *evictor) stats(keys int) tb.Stats {
	return tb.Stats{
		Keys:          keys,
		EvictedFull:   e.evictedFull,
		EvictedInDebt: e.evictedInDebt,
		Forgiven:      float64(e.forgiven) / maxScale,
		RefusedNew:    e.refused.Load(),
	}
}

// addTo adds the counts of reservations to the statistics of the table.
func (s *limits) addTo(stats *tb.Stats) {
	stats.Reservations = s.reservations.Load()
	stats.Cancellations = s.cancellations.Load()
	stats.Settled = s.settled.Tokens()
	stats.Unpaid = s.unpaid.Tokens()
}
