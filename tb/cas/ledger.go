package cas

import (
	"math"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/tb"
)

// ledger is the side of a limiter that the table sees: it orders buckets for
// eviction, ends them, and keeps account of what that costs.
type ledger struct {
	*meter

	refused atomic.Uint64

	// All below is guarded by the lock of the table.

	// latest is the latest instant at which a bucket left the table. Its key may come back
	// with an older reading, and must not be credited the time in between twice; so no new
	// bucket starts before latest.
	latest uint64

	full, inDebt uint64
	forgiven     uint64 // units
}

// Stamp implements lru.Values. The stamp of a bucket is the instant at which it will
// be full again, which only spending changes: of two buckets the one with the lower
// stamp has less to lose by being evicted, and one whose stamp has passed has nothing.
// A bucket that is sealed may have been replaced by a successor.
func (l *ledger) Stamp(b *bucket) (stamp, word uint64, final bool) {
	word = b.word.Load()
	return l.fullAt(b.base, word), word, isSealed(word)
}

// fullAt returns the instant at which a bucket is full again.
func (l *ledger) fullAt(base, word uint64) uint64 {
	delta, deficit := l.unpack(word &^ sealBit)
	return l.instant(base, delta+deficit)
}

// instant returns the first instant at which so many units after base are supplied, or
// the last there is.
func (l *ledger) instant(base, units uint64) uint64 {
	t, ok := l.reaches(l.position(base, units))
	if !ok {
		return math.MaxUint64
	}
	return t
}

// Retire implements lru.Values. A bucket that is full leaves at the instant at which it
// became full: a new one of that time or later is exactly what it would be. One in debt
// leaves now, although its own time may be later, and be it because a single call has
// brought a reading from the far future: no other key is to wait for that. What is supplied
// until it would be full is forgiven; of its own time ahead of now, at most a capacity.
func (l *ledger) Retire(b *bucket, word, now uint64) bool {
	if !b.word.CompareAndSwap(word, evicted) {
		return false
	}
	full := l.fullAt(b.base, word)
	l.latest = max(l.latest, min(now, full))
	if full <= now {
		l.full++
		return true
	}
	blocks, rest := l.split(l.at(now))
	delta, deficit := l.unpack(word &^ sealBit)
	l.inDebt++
	l.forgiven += min(l.until(b.base, delta+deficit, blocks, rest), deficit+l.capacity)
	return true
}

// forget ends b for Reset, whatever its state and its time.
func (l *ledger) forget(b *bucket) { b.retire() }

// admit returns the state of a new bucket that was charged cost at t.
func (l *ledger) admit(t, cost uint64) (base, word uint64) {
	blocks, rest := l.split(l.at(max(t, l.latest)))
	return blocks, l.pack(rest, cost)
}

func (l *ledger) stats(keys int) tb.Stats {
	return tb.Stats{
		Keys:          keys,
		EvictedFull:   l.full,
		EvictedInDebt: l.inDebt,
		Forgiven:      float64(l.forgiven) / float64(l.scale),
		RefusedNew:    l.refused.Load(),
	}
}
