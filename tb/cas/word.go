package cas

const (
	// sealBit is set in the last word of a bucket. What lies below it is its last
	// state, which stays readable.
	sealBit = uint64(1) << 63

	// evicted is the word of a bucket that is no longer in the table: sealed, with a
	// deficit that no bucket can have.
	evicted = ^uint64(0)
)

// pack returns the word of a bucket at delta units after its base that lacks deficit
// units to full. The delta lies high because it is what may run out, into the seal, and
// so that later words of a bucket are greater ones.
func (m *meter) pack(delta, deficit uint64) uint64 {
	return delta<<(m.width&63) | deficit
}

// unpack returns what pack was given. The seal must be taken off first.
func (m *meter) unpack(word uint64) (delta, deficit uint64) {
	return word >> (m.width & 63), word & m.mask
}

func isSealed(word uint64) bool { return word >= sealBit }

// fits says whether delta can be packed into a word.
func (m *meter) fits(delta uint64) bool { return delta>>(63-m.width&63) == 0 }

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
