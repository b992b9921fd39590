package lru

// move is a move of the keys of one small map to one or two others.
type move[V any] struct {
	from   *smallMap[V]
	to     [2]*smallMap[V] // for the slots below middle, and for the others
	middle int
}

// half returns the index in to of the map for a slot.
func (m *move[V]) half(slot int) int {
	if slot < m.middle {
		return 0
	}
	return 1
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
	t.maps++
	t.finish(t.begin(s, low, high), low, high)
}

// rebuild replaces a small map by one with the given number of root buckets.
func (t *table[K, V]) rebuild(s *span, buckets int) {
	next := &span{from: s.from, to: s.to, buckets: buckets}
	t.finish(t.begin(s, next), next)
}

// rebuildNext replaces the small map whose turn it is.
func (t *table[K, V]) rebuildNext() {
	s := t.spans[t.nextRebuild%len(t.spans)]
	t.nextRebuild = s.to
	t.rebuild(s, min(bucketsFor(s.keys), s.buckets))
}

// begin announces a move of the keys of s to one or two spans, which have none yet.
func (t *table[K, V]) begin(s *span, spans ...*span) *move[V] {
	m := &move[V]{from: t.slots[s.from].Load(), middle: spans[0].to}
	for i, s := range spans {
		m.to[i] = newSmallMap[V](s.buckets)
	}
	t.moving.Store(m)
	return m
}

// finish moves the keys, and puts the new maps into the directory. It removes a key from the old
// map once the new map has it, with the same value. Until then the key is looked up and replaced in
// the old map, and from then on in the new one.
func (t *table[K, V]) finish(m *move[V], spans ...*span) {
	m.from.Range(func(hash uint64, v *V) bool {
		half := m.half(t.slot(hash))
		for moved := false; !moved; {
			m.to[half].Store(hash, v)
			m.from.Compute(hash, func(now *V, _ bool) (*V, bool) {
				moved = now == v // if not, it was replaced meanwhile
				v = now
				return now, moved
			})
		}
		spans[half].keys++
		return true
	})
	for i, s := range spans {
		t.assign(m.to[i], s)
	}
	t.moving.Store(nil)
}
