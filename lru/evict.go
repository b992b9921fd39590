package lru

// evict removes the key with the least stamp of s, which must not be empty, if that
// stamp is at most limit. Otherwise it returns the stamp. Each stale stamp that it
// corrects on the way costs one of fixes.
//
// The value is retired and its key removed in one critical section of the map: who
// finds the key with Replace finds a value that is not retired, and whoever still
// holds a retired value knows by its state that it has to start over. s is locked,
// so nobody inserts the key in between.
func (m *Map[K, V]) evict(
	s *shard[K, V], limit, now uint64, fixes *int,
) (least uint64, ok bool) {
	for {
		e := m.least(s, fixes)
		if e.stamp > limit {
			s.order.push(e)
			return e.stamp, false
		}
		gone := false
		m.entries.Compute(e.key, func(v V, _ bool) (V, bool) {
			stamp, state := m.values.Stamp(v)
			gone = stamp == e.stamp && m.values.Retire(v, state, now)
			return v, gone
		})
		if gone {
			return e.stamp, true
		}
		s.order.push(e) // used in between: its stamp is stale now
	}
}

// least takes the slot with the least stamp out of the order of s, which must not be
// empty. As long as fixes last, there is an instant at which no value had a lesser one:
// the stamps that it was compared with were read one after another, but if it then still
// is what it was, it is the least of what they are, which is no less, unless they decrease.
func (m *Map[K, V]) least(s *shard[K, V], fixes *int) slot[K] {
	best, sure := m.leastSeen(s, fixes)
	for !sure && *fixes > 0 && !m.refresh(&best) {
		*fixes--
		s.order.push(best)
		best, sure = m.leastSeen(s, fixes)
	}
	return best
}

// leastSeen is least, if no value was used meanwhile; it is sure if it looked at one only.
// Stale stamps that come to the top are corrected as long as fixes last; when they run
// out, it is the least of those seen.
func (m *Map[K, V]) leastSeen(s *shard[K, V], fixes *int) (best slot[K], sure bool) {
	best = s.order.pop()
	if m.refresh(&best) {
		return best, true
	}
	var aside [maxFixes]slot[K] // what was looked at and is not the least
	n := 0
	for *fixes > 0 && s.order.len() > 0 && s.order.first().before(&best) {
		*fixes--
		e := s.order.pop()
		m.refresh(&e)
		if e.before(&best) {
			e, best = best, e
		}
		aside[n] = e
		n++
	}
	for _, e := range aside[:n] {
		s.order.push(e)
	}
	return best, n == 0
}

// refresh brings the stamp of e up to date and says whether it was.
func (m *Map[K, V]) refresh(e *slot[K]) bool {
	seen := e.stamp
	if v, ok := m.entries.Load(e.key); ok {
		e.stamp, _ = m.values.Stamp(v)
	}
	return e.stamp == seen
}
