package lru

// move is a move of the keys of one small map to one or two spans. Look-ups and replacements read
// its fields, and the small maps and the slots of its spans.
type move[V any] struct {
	from *smallMap[V]
	to   []*span[V]
}

// spanOf returns the span that the keys of a slot are moved to.
func (m *move[V]) spanOf(slot int) *span[V] {
	if slot < m.to[0].to {
		return m.to[0]
	}
	return m.to[1]
}

// grow replaces a small map by one of twice the size. If it has mostBuckets and several slots,
// grow replaces it by two instead, with half of its slots each.
func (t *table[K, V]) grow(s *span[V]) {
	if s.buckets < mostBuckets || s.to-s.from == 1 {
		t.rebuild(s, 2*s.buckets)
		return
	}
	middle := (s.from + s.to) / 2
	t.maps++
	t.move(s, newSpan[V](s.from, middle, s.buckets), newSpan[V](middle, s.to, s.buckets))
}

// rebuild replaces a small map by one with the given number of root buckets.
func (t *table[K, V]) rebuild(s *span[V], buckets int) {
	t.move(s, newSpan[V](s.from, s.to, buckets))
}

// move moves the keys of s to one or two new spans, and puts those into the directory. Look-ups and
// replacements do not wait for it: see "Small maps" in DESIGN.md §4.
func (t *table[K, V]) move(s *span[V], to ...*span[V]) {
	m := &move[V]{s.small, to}
	t.moving.Store(m)
	m.from.Range(func(hash uint64, v *V) bool {
		next := m.spanOf(t.slot(hash))
		for moved := false; !moved; {
			next.small.Store(hash, v)
			m.from.Compute(hash, func(now *V, _ bool) (*V, bool) {
				moved = now == v // if not, it was replaced meanwhile
				v = now
				return now, moved
			})
		}
		next.keys++
		return true
	})
	for _, next := range to {
		t.assign(next)
	}
	t.moving.Store(nil)
}
