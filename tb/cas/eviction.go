package cas

import (
	"math"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/tb"
)

// evictor implements lru.Values: it ranks cells for eviction, retires them, and counts the debt
// that eviction forgives.
type evictor struct {
	layout *layout

	refused atomic.Uint64 // calls on new keys

	// The lock of the lru.Map guards the fields below.

	// earliest is the instant before which no new bucket starts. Otherwise a key that was evicted
	// and comes back with an older reading would be credited the time in between twice.
	earliest uint64

	evictedFull, evictedInDebt uint64
	forgiven                   uint64 // units
}

// Stamp implements lru.Values. The stamp of a cell is the instant at which its bucket will be
// full. A grant raises the stamp, and an undo lowers it. The lower the stamp, the less an eviction
// forgives. Once the stamp has passed, an eviction forgives nothing.
func (e *evictor) Stamp(c *cell) (stamp, word uint64, final bool) {
	word = c.word.Load()
	return e.fullAt(c.base, word), word, isSealed(word)
}

// fullAt returns the instant at which a bucket will be full, or math.MaxUint64 if that instant
// is 2⁶⁴ or more.
func (e *evictor) fullAt(base, word uint64) uint64 {
	delta, deficit := e.layout.unpack(word)
	t, ok := e.layout.supply.timeOf(e.layout.unitsAfter(base, delta+deficit))
	if !ok {
		return math.MaxUint64
	}
	return t
}

// Retire implements lru.Values. A full bucket counts as evicted at the instant at which it became
// full, because it equals a new one from then on. A bucket in debt is evicted now, and its debt
// is forgiven. If a reading from the future has set its time ahead of now, the supply until that
// time is forgiven too, up to the capacity, because no other key waits for that time.
func (e *evictor) Retire(c *cell, word, now uint64) bool {
	if !c.word.CompareAndSwap(word, evicted) {
		return false
	}
	full := e.fullAt(c.base, word)
	e.earliest = max(e.earliest, min(now, full))
	if full <= now {
		e.evictedFull++
		return true
	}
	m := e.layout
	delta, deficit := m.unpack(word)
	e.evictedInDebt++
	e.forgiven += min(m.until(c.base, delta+deficit, m.positionAt(now)), deficit+m.capacity)
	return true
}

// retireForReset ends a cell whatever its word is.
func (e *evictor) retireForReset(c *cell) { c.word.Store(evicted) }

// start returns the base and the word of a new bucket that is charged with cost at t.
func (e *evictor) start(t, cost uint64) (base, word uint64) {
	p := e.layout.positionAt(max(t, e.earliest))
	return p.blocks, e.layout.pack(p.rest, cost)
}

func (e *evictor) stats(keys int) tb.Stats {
	return tb.Stats{
		Keys:          keys,
		EvictedFull:   e.evictedFull,
		EvictedInDebt: e.evictedInDebt,
		Forgiven:      float64(e.forgiven) / float64(e.layout.scale),
		RefusedNew:    e.refused.Load(),
	}
}
