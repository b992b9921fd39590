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

	// latest is the latest instant up to which a bucket that left the table had been
	// refilled. Its key may come back with an older reading, and must not be credited
	// the time in between twice; so no new bucket starts before latest.
	latest atomic.Uint64

	full, inDebt atomic.Uint64
	forgiven     atomic.Uint64 // units
	refused      atomic.Uint64
}

// Stamp implements lru.Values. The stamp of a bucket is the instant at which it will
// be full again, which only spending changes: of two buckets the one with the lower
// stamp has less to lose by being evicted, and one whose stamp has passed has nothing.
func (l *ledger) Stamp(b *bucket) (stamp, word uint64) {
	word = b.word.Load()
	return l.fullAt(b.base, word), word
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
// leaves now, when the debt is forgiven, or at its own time if that is later.
func (l *ledger) Retire(b *bucket, word, now uint64) bool {
	if !b.word.CompareAndSwap(word, evicted) {
		return false
	}
	blocks, rest := l.split(l.at(now))
	delta, deficit, _ := l.step(word&^sealBit, l.since(b.base, blocks, rest), 0)
	if deficit == 0 {
		l.leave(l.fullAt(b.base, word))
		l.full.Add(1)
		return true
	}
	l.leave(max(now, l.instant(b.base, delta)))
	l.inDebt.Add(1)
	l.forgiven.Add(deficit)
	return true
}

// forget ends b for Reset, whatever its state.
func (l *ledger) forget(b *bucket) {
	delta, _ := l.unpack(b.retire() &^ sealBit)
	l.leave(l.instant(b.base, delta))
}

// leave notes that a bucket left the table, refilled up to the given instant.
func (l *ledger) leave(at uint64) {
	for {
		latest := l.latest.Load()
		if at <= latest || l.latest.CompareAndSwap(latest, at) {
			return
		}
	}
}

// admit returns the state of a new bucket that was charged cost at t.
func (l *ledger) admit(t, cost uint64) (base, word uint64) {
	blocks, rest := l.split(l.at(max(t, l.latest.Load())))
	return blocks, l.pack(rest, cost)
}

func (l *ledger) stats(keys int) tb.Stats {
	return tb.Stats{
		Keys:          keys,
		EvictedFull:   l.full.Load(),
		EvictedInDebt: l.inDebt.Load(),
		Forgiven:      float64(l.forgiven.Load()) / float64(l.scale),
		RefusedNew:    l.refused.Load(),
	}
}
