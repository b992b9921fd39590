package lru

import (
	"fmt"
	"math"
	"slices"

	"github.com/seed-181794aa/ratelimit/proof/modelcheck"
)

// first and second are the multipliers of a hasher that spreads keys of one letter: a and c
// are in the lower half of the slots and b and d in the upper half, each in its own quarter.
// In a small map of two root buckets, a, b and c share a bucket.
const (
	first  = 0xe0ef6ae25273ab3a
	second = 0xa853ffbf35b87125
)

// Expose labels the variables of m, which has no keys yet, and makes its hashes the same in
// every run. If collide is true, all keys of one letter have the same hash.
func (m *Map[K, V]) Expose(keys []K, collide bool) {
	t := &m.table
	t.hasher.first, t.hasher.second = first, second
	if collide {
		t.hasher.second = 1 // the last factor is 0 for keys of one byte
	}
	for _, k := range keys {
		h := t.hasher.hash(k)
		for _, dash := range []string{"", "'", "''"} {
			modelcheck.LabelKey(h, fmt.Sprint(k)+dash)
			h = nextHash(h)
		}
	}
	m.mu.Label("lock")
	m.mu.Guards(m.digest)
	m.inserts.Label("inserts")
	m.refuseUntil.Label("until")
	m.front.pairs.Label("front")
	for i := range *m.front.pairs.Load() {
		p := &(*m.front.pairs.Load())[i]
		p.hash.Label(fmt.Sprintf("hash %d", i))
		p.value.Label(fmt.Sprintf("pair %d", i))
	}
	t.moving.Label("moving")
	t.collided.Label("collided")
	for i := range t.slots {
		t.slots[i].Label(fmt.Sprintf("slot %d", i))
	}
}

// digest returns a digest of the data that the lock guards. It digests the order as a set,
// because its layout in memory makes no difference.
func (m *Map[K, V]) digest() uint64 {
	type ranked struct{ stamp, sequence, value uint64 }
	var sum uint64
	for _, e := range m.order.entries() {
		sum += modelcheck.Hash(ranked{e.stamp, e.sequence, modelcheck.Identity(e.value, "value")})
	}
	for i, s := range m.table.spans {
		sum += modelcheck.Hash([...]int{i, s.from, s.to, s.buckets, s.keys})
	}
	t := &m.table
	sum += modelcheck.Hash([...]int{t.keys, t.maps, t.inserts, t.nextRebuild})
	if values, ok := m.values.(interface{ Digest() uint64 }); ok {
		sum += values.Digest()
	}
	return sum
}

func (o *order[V]) entries() []entry[V] {
	var entries []entry[V]
	for i := range o.heap.n {
		entries = append(entries, *o.heap.at(i))
	}
	for i := range o.sorted.n {
		entries = append(entries, *o.sorted.at(i))
	}
	return entries
}

// stored is a value in one of the small maps.
type stored[V any] struct {
	in   *smallMap[V]
	hash uint64
	v    *V
}

// stored yields the values in the small maps. Maps that keys are moved to come last.
func (t *table[K, V]) stored(yield func(stored[V]) bool) {
	var maps []*smallMap[V]
	for i := range t.slots {
		maps = append(maps, t.slots[i].Load())
	}
	if move := t.moving.Load(); move != nil {
		for _, s := range move.to {
			maps = append(maps, s.small)
		}
	}
	goesOn := true
	for i, m := range maps {
		if goesOn && !slices.Contains(maps[:i], m) {
			m.Each(func(hash uint64, v *V) bool {
				goesOn = yield(stored[V]{m, hash, v})
				return goesOn
			})
		}
	}
}

// Find returns the value of key, or nil, without a look-up.
func (m *Map[K, V]) Find(key K) *V {
	for s := range m.table.stored {
		if m.table.hasKey(s.v, key) {
			return s.v
		}
	}
	return nil
}

// CheckSize implements registry.Limiter. While keys are moved, a key may be in two maps. It also
// checks the front: a value that has not ended is the value of its key.
func (m *Map[K, V]) CheckSize() error {
	for i := range *m.front.pairs.Load() {
		v := (*m.front.pairs.Load())[i].value.Load()
		if v == nil {
			continue
		}
		k := m.table.keyOf(v)
		if _, _, ended := m.values.Stamp(v); !ended && m.Find(k) != v {
			return fmt.Errorf("the front has a value of %v that is not in the table", k)
		}
	}
	keys := make(map[K]bool, m.max+1)
	for s := range m.table.stored {
		keys[m.table.keyOf(s.v)] = true
	}
	if len(keys) > m.max || m.table.keys > m.max {
		return fmt.Errorf("%d keys are stored and %d counted, of %d",
			len(keys), m.table.keys, m.max)
	}
	return nil
}

// CheckTable implements registry.Limiter.
func (m *Map[K, V]) CheckTable(undone bool) error {
	t := &m.table
	if t.moving.Load() != nil {
		return fmt.Errorf("a move of keys does not end")
	}
	values := make(map[K]*V)
	inMap := make(map[*smallMap[V]]int)
	for s := range t.stored {
		k := t.keyOf(s.v)
		slot := t.slot(s.hash)
		switch {
		case values[k] != nil:
			return fmt.Errorf("%v is in the table twice", k)
		case t.slots[slot].Load() != s.in:
			return fmt.Errorf("%v is not in the map of its slot %d", k, slot)
		case m.Load(k) != s.v:
			return fmt.Errorf("%v is in the table, and a look-up does not find it", k)
		}
		values[k] = s.v
		inMap[s.in]++
	}
	if err := t.checkSlots(inMap); err != nil {
		return err
	}
	entries := m.order.entries()
	if len(values) != t.keys || len(entries) != t.keys {
		return fmt.Errorf("%d keys in the table, %d in the order, %d counted",
			len(values), len(entries), t.keys)
	}
	for _, e := range entries {
		k := t.keyOf(e.value)
		v := values[k]
		if v == nil {
			return fmt.Errorf("the order has %v, which is not in the table, or has it twice", k)
		}
		delete(values, k)
		_, _, final := m.values.Stamp(e.value)
		stamp, _, ended := m.values.Stamp(v)
		switch {
		case ended:
			return fmt.Errorf("the value of %v was ended and not removed", k)
		case !final && v != e.value:
			return fmt.Errorf("the order has a value of %v that is neither in the table nor ended", k)
		case stamp < e.stamp && !undone:
			return fmt.Errorf("the order has %v at %d, above %d", k, e.stamp, stamp)
		}
	}
	full := m.refuseNew && t.keys == m.max
	if until := m.refuseUntil.Load(); full != (until > 0) || until > m.leastStamp() && !undone {
		return fmt.Errorf("full: %v, until %d", full, until)
	}
	return nil
}

// leastStamp returns the least stamp of all values.
func (m *Map[K, V]) leastStamp() uint64 {
	least := uint64(math.MaxUint64)
	for s := range m.table.stored {
		stamp, _, _ := m.values.Stamp(s.v)
		least = min(least, stamp)
	}
	return least
}

// checkSlots checks the slots and the counts of keys, given the number of keys in each map.
func (t *table[K, V]) checkSlots(keys map[*smallMap[V]]int) error {
	maps := 0
	for i, s := range t.spans {
		m := t.slots[i].Load()
		if i == s.from {
			maps++
		}
		switch {
		case i < s.from || i >= s.to || m != t.slots[s.from].Load() || *s != *t.spans[s.from]:
			return fmt.Errorf("slot %d has a map for %d to %d", i, s.from, s.to)
		case s.from > 0 && i == s.from && m == t.slots[i-1].Load():
			return fmt.Errorf("the map of slot %d is also the map of the slot before", i)
		case s.keys != keys[m] || s.keys > keysFor(s.buckets):
			return fmt.Errorf("slot %d has %d keys, but counts %d, in %d buckets",
				i, keys[m], s.keys, s.buckets)
		}
	}
	if maps != t.maps {
		return fmt.Errorf("%d maps, but %d are counted", maps, t.maps)
	}
	return nil
}
