package lru

// move is a move of the keys of one small map to one or two others.
type move[V any] struct {
	from   *smallMap[V]
	to     [2]*smallMap[V] // for the slots below middle, and for the others
	middle int
}

func (m *move[V]) target(slot int) *smallMap[V] {
	if slot < m.middle {
		return m.to[0]
	}
	return m.to[1]
}

// grow replaces a small map by one of twice the size. If it has mostBuckets and several slots,
// grow replaces it by two instead, with half of its slots each.
func (t *table[K, V]) grow(s *span) {
	if s.buckets < mostBuckets || s.to-s.from == 1 {
		t.rebuild(s, 2*s.buckets)
		return
	}
	middle := (s.from + s.to) / 2
	low := &span{from: s.from, to: middle, buckets: s.buckets}
	high := &span{from: middle, to: s.to, buckets: s.buckets}
	m := &move[V]{
		from:   t.slots[s.from].Load(),
		to:     [2]*smallMap[V]{newSmallMap[V](low.buckets), newSmallMap[V](high.buckets)},
		middle: middle,
	}
	low.keys = t.moveKeys(m)
	high.keys = s.keys - low.keys
	t.maps++
	t.finish(m, low, high)
}

// rebuild replaces a small map by one with the given number of root buckets.
func (t *table[K, V]) rebuild(s *span, buckets int) {
	to := newSmallMap[V](buckets)
	m := &move[V]{from: t.slots[s.from].Load(), to: [2]*smallMap[V]{to, to}, middle: s.to}
	t.moveKeys(m)
	t.finish(m, &span{from: s.from, to: s.to, buckets: buckets, keys: s.keys})
}

// rebuildNext replaces the small map whose turn it is.
func (t *table[K, V]) rebuildNext() {
	s := t.spans[t.nextRebuild%len(t.spans)]
	t.nextRebuild = s.to
	t.rebuild(s, min(bucketsFor(s.keys), s.buckets))
}

// moveKeys moves the keys, and returns the number of keys for the slots below the middle. It
// removes a key from the old map once the new map has it, with the same value. Until then the
// key is looked up and replaced in the old map, and from then on in the new one.
func (t *table[K, V]) moveKeys(m *move[V]) (low int) {
	t.moving.Store(m)
	m.from.Range(func(hash uint64, v *V) bool {
		slot := t.slot(hash)
		if slot < m.middle {
			low++
		}
		to := m.target(slot)
		for moved := false; !moved; {
			to.Store(hash, v)
			m.from.Compute(hash, func(now *V, _ bool) (*V, bool) {
				moved = now == v // if not, it was replaced meanwhile
				v = now
				return now, moved
			})
		}
		return true
	})
	return low
}

// finish puts the new maps into the directory.
func (t *table[K, V]) finish(m *move[V], spans ...*span) {
	for _, s := range spans {
		t.assign(m.target(s.from), s)
	}
	t.moving.Store(nil)
}
