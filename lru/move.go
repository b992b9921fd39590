package lru

// move is the keys of a small map on their way to one or two others.
type move[V any] struct {
	from *small[V]
	to   [2]*small[V] // for the slots below middle, and the others
	mid  int
}

func (g *move[V]) target(slot int) *small[V] {
	if slot < g.mid {
		return g.to[0]
	}
	return g.to[1]
}

// grow makes room in the range of a small map that is full: in two for half the slots
// each, or in one of twice the size.
func (t *table[K, V]) grow(s *size) {
	if s.buckets < mostBuckets || s.to-s.from == 1 {
		t.rebuild(s, 2*s.buckets)
		return
	}
	mid := (s.from + s.to) / 2
	low := &size{from: s.from, to: mid, buckets: s.buckets}
	high := &size{from: mid, to: s.to, buckets: s.buckets}
	g := &move[V]{
		from: t.slots[s.from].Load(),
		to:   [2]*small[V]{newSmall[V](low.buckets), newSmall[V](high.buckets)},
		mid:  mid,
	}
	low.keys = t.run(g)
	high.keys = s.keys - low.keys
	t.maps++
	t.finish(g, low, high)
}

// rebuild replaces a small map by one of so many root buckets.
func (t *table[K, V]) rebuild(s *size, buckets int) {
	m := newSmall[V](buckets)
	g := &move[V]{from: t.slots[s.from].Load(), to: [2]*small[V]{m, m}, mid: s.to}
	t.run(g)
	t.finish(g, &size{from: s.from, to: s.to, buckets: buckets, keys: s.keys})
}

// rebuildNext makes the small map anew whose turn it is.
func (t *table[K, V]) rebuildNext() {
	s := t.sizes[t.rebuilt%len(t.sizes)]
	t.rebuilt = s.to
	if buckets := fitting(s.keys); buckets <= s.buckets {
		t.rebuild(s, buckets)
	} else {
		t.grow(s)
	}
}

// run moves the keys, and returns how many of them were for slots below the middle. A
// key is removed from the old map when it is in the new one, with the same value: until
// then it is looked up and replaced in the old one, and from then on in the new one.
func (t *table[K, V]) run(g *move[V]) (low int) {
	t.moving.Store(g)
	g.from.Range(func(hash uint64, v *V) bool {
		slot := t.slot(hash)
		if slot < g.mid {
			low++
		}
		to := g.target(slot)
		for moved := false; !moved; {
			to.Store(hash, v)
			g.from.Compute(hash, func(now *V, _ bool) (*V, bool) {
				moved = now == v // or it was replaced meanwhile
				v = now
				return now, moved
			})
		}
		return true
	})
	return low
}

// finish puts the new maps into the directory.
func (t *table[K, V]) finish(g *move[V], sizes ...*size) {
	for _, s := range sizes {
		t.assign(g.target(s.from), s)
	}
	t.moving.Store(nil)
}
