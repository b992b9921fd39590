package replay

import "math/bits"

// maxClients is how many keys a distinct holds. Up to there its counts are exact.
// Beyond, it keeps between half as many and all, which gives the number of keys a
// standard error below 0.4 %, at about 5 MB.
const maxClients = 1 << 17

// clients counts the distinct keys, and those that a limit refused at least once. As the
// latter are counted apart, they are exact in a log of far more than maxClients keys.
type clients struct {
	all     *distinct
	refused *distinct // with one bit for each limit that refused the key
}

func newClients(max int) clients {
	return clients{newDistinct(max), newDistinct(max)}
}

// add notes a request of key, and the limits that refused it, one bit each.
func (c *clients) add(key []byte, refused uint64) {
	h := hash(key)
	c.all.add(h, 0)
	if refused != 0 {
		c.refused.add(h, refused)
	}
}

// distinct counts distinct hashes in bounded memory: by a uniform sample of them, those
// that begin with shift zero bits, one more each time the sample has outgrown its bound
// (Wegman's adaptive sampling). A hash is in it from its first time or never, so what is
// known of those in the sample is exact.
type distinct struct {
	max   int
	shift int
	masks map[uint64]uint64 // by hash: all bits that ever came with it
}

func newDistinct(max int) *distinct {
	return &distinct{max: max, masks: make(map[uint64]uint64)}
}

// add notes a hash, and bits that come with it.
func (d *distinct) add(h, mask uint64) {
	if bits.LeadingZeros64(h) < d.shift {
		return
	}
	before, known := d.masks[h]
	if known && before|mask == before {
		return
	}
	d.masks[h] = before | mask
	for len(d.masks) > d.max {
		d.thin()
	}
}

// thin halves the sample.
func (d *distinct) thin() {
	d.shift++
	for h := range d.masks {
		if bits.LeadingZeros64(h) < d.shift {
			delete(d.masks, h)
		}
	}
}

// exact says whether the counts are exact, or estimates.
func (d *distinct) exact() bool { return d.shift == 0 }

// total returns the number of distinct hashes.
func (d *distinct) total() uint64 { return uint64(len(d.masks)) << d.shift }

// with returns the number of distinct hashes that a bit came with.
func (d *distinct) with(bit int) uint64 {
	var n uint64
	for _, mask := range d.masks {
		n += mask >> bit & 1
	}
	return n << d.shift
}

// hash is FNV-1a with its bits mixed once more, since the top ones decide here. It is
// the same in every run, and so are the estimates.
func hash(key []byte) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, b := range key {
		h = (h ^ uint64(b)) * prime
	}
	h ^= h >> 32
	h *= 0x9e3779b97f4a7c15 // 2⁶⁴ divided by the golden ratio
	return h ^ h>>29
}
