package lru

const (
	// maxLooks bounds the stale stamps that one insert corrects once it has found a value
	// that has nothing to lose, and those that it corrects to drop idle values.
	maxLooks = 16

	// maxLooksAtStake bounds them if it has found none. So for a value to be evicted in the
	// place of one that has nothing to lose, more than so many keys have to be used that the
	// order has not looked at since. Correcting so many takes 28 µs if they come in order
	// (BenchmarkCorrect). The next insert need not correct them again: there is at most one
	// correction for each use.
	maxLooksAtStake = 1024
)

// budget is how many more stale stamps an insert may correct.
type budget struct {
	certain int // when it has a value that has nothing to lose
	atStake int // when it has none
}

// spend takes a correction from b and reports whether there was one left.
func (b *budget) spend(certain bool) bool {
	b.certain--
	b.atStake--
	if certain {
		return b.certain >= 0
	}
	return b.atStake >= 0
}

// candidate is a slot that was taken out of the order, and the state of its value.
type candidate[V any] struct {
	slot[V]
	state uint64
}

// evict removes the key with the least stamp, of which there must be one, if that stamp
// is at most limit. Otherwise it returns the stamp.
func (m *Map[K, V]) evict(limit, now uint64, b *budget) (least uint64, ok bool) {
	for {
		c := m.least(now, b)
		if c.stamp <= limit {
			if m.retire(&c, now) {
				return c.stamp, true
			}
			m.order.put(c.slot) // used in between: its stamp is stale now
			continue
		}
		seen := c.stamp
		m.refresh(&c)
		m.order.put(c.slot)
		if c.stamp == seen || !b.spend(false) {
			return c.stamp, false
		}
	}
}

// least takes the slot with the least stamp out of the order, which must not be empty.
//
// Stamps are read one after another. They only grow, so if that of the slot is the same
// when it is read again, it was the least at that moment. Once the budget is spent, it is
// the least of those that were looked at.
func (m *Map[K, V]) least(now uint64, b *budget) candidate[V] {
	best := m.next()
	for m.order.len() > 0 && m.order.first().before(&best.slot) && b.spend(best.stamp <= now) {
		c := m.next()
		if c.before(&best.slot) {
			c, best = best, c
		}
		m.order.put(c.slot)
	}
	return best
}

// next takes the first slot out of the order and brings it up to date.
func (m *Map[K, V]) next() candidate[V] {
	c := candidate[V]{slot: m.order.pop()}
	m.refresh(&c)
	return c
}

// refresh brings a slot up to date: its stamp, and the value if that has a successor.
func (m *Map[K, V]) refresh(c *candidate[V]) {
	var final bool
	if c.stamp, c.state, final = m.values.Stamp(c.value); final {
		c.value = m.table.load(m.table.key(c.value))
		c.stamp, c.state, _ = m.values.Stamp(c.value)
	}
}

// retire ends the value of c, if that is still its key's and has the state that was seen,
// and removes the key. Both happen in one critical section of a small map: a caller that
// finds the key with Replace finds a value that is not retired, and a caller that still
// holds a retired value sees by its state that it has to start over.
func (m *Map[K, V]) retire(c *candidate[V], now uint64) bool {
	return m.table.remove(m.table.key(c.value), func(v *V) bool {
		return v == c.value && m.values.Retire(v, c.state, now)
	}) != nil
}
