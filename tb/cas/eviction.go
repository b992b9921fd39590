package cas

import (
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/tb"
)

// evictor implements lru.Values: it ranks cells for eviction, retires them, and counts the debt
// that eviction forgives.
type evictor struct {
	limits *limits

	refused atomic.Uint64 // calls on new keys

	// The lock of the lru.Map guards the fields below.
	earliest uint64 // the instant before which no new bucket starts: DESIGN.md §4, late readings

	evictedFull, evictedInDebt uint64
	forgiven                   wide // millionths of a token, which a uint64 may not hold
}

// Stamp implements lru.Values. The stamp of a cell is the instant at which its bucket will be full:
// DESIGN.md §4.
func (e *evictor) Stamp(c *cell) (stamp, word uint64, final bool) {
	word = c.word.Load()
	m := e.limits.of(c).Load()
	return m.fullAt(m.balanceSince(c, word)), word, isSealed(word)
}

// Retire implements lru.Values. What an eviction forgives is in DESIGN.md §4, late readings.
func (e *evictor) Retire(c *cell, stamp, word, now uint64) bool {
	if !c.word.CompareAndSwap(word, evicted) {
		return false
	}
	e.earliest = max(e.earliest, min(now, stamp))
	if stamp <= now {
		e.evictedFull++
		return true
	}
	m := e.limits.of(c).Load()
	b := m.balanceSince(c, word)
	if c.isHeld() { // the time of a hold is no debt
		until, _ := c.heldUntil(word)
		now = max(now, until)
	}
	most := b.deficit + m.capacity
	if b.deficit > m.capacity { // its time is a slot, and not a reading from the future
		most = m.capacity + deepestDebt*m.scale
	}
	e.evictedInDebt++
	e.forgiven = e.forgiven.plus(m.micros(min(b.missing(m.supply.at(now)), most)))
	return true
}

func (e *evictor) stats(keys int) tb.Stats {
	return tb.Stats{
		Keys:          keys,
		EvictedFull:   e.evictedFull,
		EvictedInDebt: e.evictedInDebt,
		Forgiven:      (float64(e.forgiven.hi)*(1<<64) + float64(e.forgiven.lo)) / maxScale,
		RefusedNew:    e.refused.Load(),
	}
}
