package replay

import (
	"github.com/seed-181794aa/ratelimit/cmd/internal/sketch"
	"github.com/seed-181794aa/ratelimit/internal/hash"
)

// maxDistinct is how many keys a distinctCounter holds. Its counts are exact up to there. Beyond,
// it keeps between about half as many and all, so the number of keys has a standard error of
// about 0.4 % at most. It takes about 5 MB.
const maxDistinct = 1 << 17

// distinctCounter counts distinct keys in bounded memory.
type distinctCounter struct {
	hashes sketch.Sample[uint64, struct{}]
}

func newDistinctCounter(bound int) distinctCounter {
	itself := func(h uint64) uint64 { return h }
	return distinctCounter{sketch.NewSample[uint64, struct{}](bound, itself)}
}

func (d *distinctCounter) add(key []byte) {
	h := hash.Mix(hash.Add(hash.Empty, key))
	if _, known := d.hashes.Values[h]; !known && d.hashes.Takes(h) {
		d.hashes.Put(h, struct{}{}, func(struct{}) {})
	}
}

// exact reports whether the count is exact. Otherwise it is an estimate.
func (d *distinctCounter) exact() bool { return d.hashes.OneIn() == 1 }

// total returns the number of distinct keys.
func (d *distinctCounter) total() uint64 { return uint64(len(d.hashes.Values)) * d.hashes.OneIn() }
