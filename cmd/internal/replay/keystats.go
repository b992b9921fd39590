package replay

import (
	"cmp"
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/internal/sketch"
	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
	"github.com/seed-181794aa/ratelimit/internal/hash"
)

// maxTracked is how many keys have statistics of their own. One takes about 150 bytes, and up
// to 256 bytes for each part of its key.
const maxTracked = 4096

// tracked is a key that has statistics. Its Count is the number of its requests.
type tracked = sketch.Entry[keyStats]

// keyStats has the statistics of a key since tracking of it began.
type keyStats struct {
	requests, refused uint64
	peak              suggest.Peak
}

// ranking finds the keys with the most requests, in bounded memory.
type ranking struct{ *sketch.Summary[keyStats] }

func newRanking(bound int) ranking { return ranking{sketch.NewSummary[keyStats](bound)} }

// track counts a request of a key and returns its entry.
func (r ranking) track(key []byte) *tracked {
	e, added := r.See(key)
	if added {
		e.Value = keyStats{}
	}
	e.Count++
	e.Value.requests++
	return e
}

// add adds a decision in a second since 1970. It reports whether the decision is the first one on
// the key, or the first refusal.
func (s *keyStats) add(second int64, granted bool) (news bool) {
	s.peak.Add(second)
	if !granted {
		s.refused++
	}
	return s.requests == 1 || !granted && s.refused == 1
}

// top returns at most n keys: the ones that were refused most first, and equals by their requests.
func (r ranking) top(n int) []*tracked {
	all := slices.SortedFunc(r.All(), func(a, b *tracked) int {
		return cmp.Or(cmp.Compare(b.Value.refused, a.Value.refused),
			cmp.Compare(b.Value.requests, a.Value.requests), cmp.Compare(a.Key, b.Key))
	})
	return all[:min(n, len(all))]
}

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
		d.hashes.Put(h, struct{}{})
	}
}

// exact reports whether the count is exact. Otherwise it is an estimate.
func (d *distinctCounter) exact() bool { return d.hashes.OneIn() == 1 }

// total returns the number of distinct keys.
func (d *distinctCounter) total() uint64 { return uint64(len(d.hashes.Values)) * d.hashes.OneIn() }
