package replay

import (
	"cmp"
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/spacesaving"
)

// maxTracked is how many keys have statistics of their own: about 500 bytes each, a key of
// at most 256 a part, and a levels of up to 8 KiB. That is 36 MB if all of them send
// requests all the time, and 4 MB if they come and go.
const maxTracked = 4096

// keyStats has the statistics of one key since it is tracked.
type keyStats struct {
	requests   uint64
	refused    uint64
	run        uint64 // refusals in a row, up to now
	longestRun uint64
	peak       peak
	levels     levels
}

// tracked is a key that has statistics. Its Count is its refusals.
type tracked = spacesaving.Entry[keyStats]

// ranking finds the keys that are refused most, in bounded memory.
type ranking struct{ *spacesaving.Summary[keyStats] }

func newRanking(bound int) ranking { return ranking{spacesaving.New[keyStats](bound)} }

// see returns the entry of a key that sent a request.
func (r ranking) see(key []byte) *tracked {
	e, added := r.See(key)
	if added {
		e.Value = keyStats{levels: e.Value.levels.emptied()}
	}
	e.Value.requests++
	return e
}

// most returns the n keys with the most refusals since they are tracked, the most
// refused first and in the order of their keys among equals. There may be fewer.
func (r ranking) most(n int) []*tracked {
	var refused []*tracked
	for e := range r.All() {
		if e.Value.refused > 0 {
			refused = append(refused, e)
		}
	}
	slices.SortFunc(refused, func(a, b *tracked) int {
		return cmp.Or(cmp.Compare(b.Value.refused, a.Value.refused), cmp.Compare(a.Key, b.Key))
	})
	return refused[:min(n, len(refused))]
}

// add counts a decision in a second since 1970.
func (s *keyStats) add(second int64, granted bool) {
	s.peak.add(second)
	if granted {
		s.run = 0
		return
	}
	s.refused++
	s.run++
	s.longestRun = max(s.longestRun, s.run)
}
