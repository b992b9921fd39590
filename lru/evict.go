package lru

const (
	// maxLooksToImprove is the most stale stamps that an insert corrects once it has found a value
	// with nothing to lose, and to drop idle values.
	maxLooksToImprove = 16

	// maxLooksToFind is the most that it corrects to find one. So it misses such a value only if more
	// keys than that were used since the order looked at them, or after a stamp decreased. 1,024
	// corrections take 28 µs if the stamps come in order (BenchmarkCorrect).
	maxLooksToFind = 1024
)

// budget is the number of stale stamps that an insert may still correct.
type budget struct {
	toImprove int // if it has a value that has nothing to lose
	toFind    int // if it has none
}

// spend takes a correction from b and reports whether there was one left. found reports that the
// insert has a value with nothing to lose.
func (b *budget) spend(found bool) bool {
	b.toImprove--
	b.toFind--
	if found {
		return b.toImprove >= 0
	}
	return b.toFind >= 0
}

// candidate is an entry that was taken out of the order, and the state of its value.
type candidate[V any] struct {
	entry[V]
	state uint64
}

// evict removes the key with the least stamp, unless that stamp is above highest. It returns the
// stamp, and whether it removed the key. The order must not be empty.
func (m *Map[K, V]) evict(highest, now uint64, b *budget) (least uint64, ok bool) {
	for {
		c := m.popLeast(now, b)
		if c.stamp <= highest {
			if m.retire(c, now) {
				return c.stamp, true
			}
			m.order.put(c.entry) // used since: its stamp is stale
			continue
		}
		before := c.stamp
		c = m.refresh(c.entry)
		m.order.put(c.entry)
		if c.stamp > highest && (c.stamp == before || !b.spend(false)) {
			return c.stamp, false
		}
	}
}

// popLeast takes the entry with the least stamp out of the order, which must not be empty.
//
// Stamps are read one after another and, as a rule, only grow. So the entry has the least stamp of
// all when the last one is read, unless its own has grown since, which evict checks by Retire or
// refresh. Once the budget is spent, the true stamp of another entry may be lower.
func (m *Map[K, V]) popLeast(now uint64, b *budget) candidate[V] {
	best := m.refresh(m.order.pop())
	for m.order.len() > 0 && m.order.first().before(&best.entry) && b.spend(best.stamp <= now) {
		c := m.refresh(m.order.pop())
		if c.before(&best.entry) {
			c, best = best, c
		}
		m.order.put(c.entry)
	}
	return best
}

// refresh reads the stamp of e's value again. If the value was replaced, the result has the value
// that replaced it.
func (m *Map[K, V]) refresh(e entry[V]) candidate[V] {
	stamp, state, final := m.values.Stamp(e.value)
	if final {
		e.value = m.Load(m.table.keyOf(e.value))
		stamp, state, _ = m.values.Stamp(e.value)
	}
	return candidate[V]{entry[V]{stamp, e.sequence, e.value}, state}
}

// retire ends c's value and removes its key, if the key still has that value in that state. Both
// happen in one critical section of a small map: see "Eviction" in DESIGN.md §4.
func (m *Map[K, V]) retire(c candidate[V], now uint64) (retired bool) {
	t := &m.table
	key := t.keyOf(c.value)
	hash := t.hasher.hash(key)
	stored := hash
	if t.collided.Load() != nil {
		_, stored = t.probe(hash, key)
	}
	s := t.spans[t.slot(stored)]
	s.small.Compute(stored, func(v *V, _ bool) (*V, bool) {
		retired = v == c.value && m.values.Retire(v, c.stamp, c.state, now)
		return v, retired
	})
	if !retired {
		return false
	}
	m.front.follow(hash, c.value, nil)
	t.keys--
	if s.keys--; s.sparse() {
		t.rebuild(s, bucketsFor(s.keys))
	}
	return true
}
