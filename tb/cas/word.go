package cas

// evicted is the word of a bucket that is no longer in the table: sealed, with a
// deficit that no bucket can have.
const evicted = ^uint64(0)

// pack returns the word of a bucket at delta units after its base that lacks deficit
// units to full. The delta lies high, so that all sealed words are above all others
// and one comparison finds them.
func (m *meter) pack(delta, deficit uint64) uint64 {
	return delta<<(m.width&63) | deficit
}

func (m *meter) unpack(word uint64) (delta, deficit uint64) {
	return word >> (m.width & 63), word & m.mask
}

// isSealed says whether word will never change again, other than to evicted.
func (m *meter) isSealed(word uint64) bool { return word >= m.sealed }

// lasting says whether delta can be packed into a word that is not sealed.
func (m *meter) lasting(delta uint64) bool { return delta < m.sealed>>(m.width&63) }

// step is the token bucket: what word becomes when a call of the given cost comes
// now, in units after the base. The bucket is refilled by what has been supplied since
// its own time, unless that is later than now, and then it lacks cost more. The call
// is granted if the deficit is still within the capacity.
func (m *meter) step(word, now, cost uint64) (delta, deficit uint64, granted bool) {
	delta, deficit = m.unpack(word)
	if now > delta {
		deficit -= min(deficit, now-delta)
		delta = now
	}
	deficit += cost
	return delta, deficit, deficit <= m.capacity
}

// seal returns word with its time advanced to the end of its delta, and refilled by
// as much: the last word of a bucket that has to move to a new base.
func (m *meter) seal(word uint64) uint64 {
	_, deficit, _ := m.step(word, m.sealed>>(m.width&63), 0)
	return m.sealed | deficit
}
