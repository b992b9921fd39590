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

	// latest is the latest instant at which a key left the table. It may come back
	// with an older reading, and must not be refilled for the time in between
	// twice; so no new bucket starts before latest.
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
	delta, deficit := l.unpack(word &^ sealBit)
	stamp, ok := l.reaches(l.position(b.base, delta+deficit))
	if !ok {
		stamp = math.MaxUint64
	}
	return stamp, word
}

// Retire implements lru.Values.
func (l *ledger) Retire(b *bucket, word, now uint64) bool {
	if !b.word.CompareAndSwap(word, evicted) {
		return false
	}
	l.leave(now)
	blocks, rest := l.split(l.at(now))
	_, deficit, _ := l.step(word&^sealBit, l.since(b.base, blocks, rest), 0)
	if deficit == 0 {
		l.full.Add(1)
		return true
	}
	l.inDebt.Add(1)
	l.forgiven.Add(deficit)
	return true
}

// forget ends b for Reset, whatever its state.
func (l *ledger) forget(b *bucket) {
	delta, _ := l.unpack(b.retire() &^ sealBit)
	if t, ok := l.reaches(l.position(b.base, delta)); ok {
		l.leave(t)
	}
}

// leave notes that a key left the table at the given instant.
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
