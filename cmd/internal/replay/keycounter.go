package replay

import (
	"github.com/seed-181794aa/ratelimit/cmd/internal/sketch"
	"github.com/seed-181794aa/ratelimit/internal/hash"
)

// maxDistinct is how many keys a distinctCounter holds. Its counts are exact up to there. Beyond,
// it keeps between about half as many and all, so the number of keys has a standard error of
// about 0.4 % at most. It takes about 5 MB.
const maxDistinct = 1 << 17

// keyCounter counts distinct keys, and the keys that a limit refused at least once. The
// refused keys are counted apart, so their number is exact even in a log of far more than
// maxDistinct keys.
type keyCounter struct {
	all     *distinctCounter
	refused *distinctCounter // a bit for each limit that refused the key
}

func newKeyCounter(bound int) keyCounter {
	return keyCounter{newDistinctCounter(bound), newDistinctCounter(bound)}
}

// add counts a request of key. Each limit that refused it has its bit set in refused.
func (c *keyCounter) add(key []byte, refused uint64) {
	h := hash.Mix(hash.Add(hash.Empty, key))
	c.all.add(h, 0)
	if refused != 0 {
		c.refused.add(h, refused)
	}
}

// distinctCounter counts distinct hashes in bounded memory. The bits of a hash in its sample are
// complete, because the sample has a hash from its first time or never.
type distinctCounter struct {
	masks sketch.Sample[uint64, uint64] // by hash: all bits that were added with it
}

func newDistinctCounter(bound int) *distinctCounter {
	itself := func(h uint64) uint64 { return h }
	return &distinctCounter{sketch.NewSample[uint64, uint64](bound, itself)}
}

// add counts a hash and the bits in mask.
func (d *distinctCounter) add(h, mask uint64) {
	if !d.masks.Takes(h) {
		return
	}
	before, known := d.masks.Values[h]
	if !known || before|mask != before {
		d.masks.Put(h, before|mask, func(uint64) {})
	}
}

// exact reports whether the counts are exact. Otherwise they are estimates.
func (d *distinctCounter) exact() bool { return d.masks.OneIn() == 1 }

// total returns the number of distinct hashes.
func (d *distinctCounter) total() uint64 { return uint64(len(d.masks.Values)) * d.masks.OneIn() }

// totalWith returns the number of distinct hashes that were added with a bit.
func (d *distinctCounter) totalWith(bit int) uint64 {
	var n uint64
	for _, mask := range d.masks.Values {
		n += mask >> bit & 1
	}
	return n * d.masks.OneIn()
}
