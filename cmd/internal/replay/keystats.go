package replay

import (
	"cmp"
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/internal/sketch"
	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
)

// maxTracked is how many keys have statistics of their own. One takes about 150 bytes, and up
// to 256 bytes for each part of its key.
const maxTracked = 4096

// tracked is a key that has statistics. Its Count is the number of its refusals.
type tracked = sketch.Entry[keyStats]

// keyStats has the statistics of a key since tracking of it began.
type keyStats struct {
	requests   uint64
	refused    uint64
	run        uint64 // refusals in a row, up to now
	longestRun uint64
	peak       suggest.Peak

	counted   bool   // whether keyCounter has the key
	refusedBy uint64 // a bit for each limit of which keyCounter has a refusal
}

// ranking finds the keys that are refused most, in bounded memory.
type ranking struct{ *sketch.Summary[keyStats] }

func newRanking(bound int) ranking { return ranking{sketch.NewSummary[keyStats](bound)} }

// track counts a request of a key and returns its entry.
func (r ranking) track(key []byte) *tracked {
	e, added := r.See(key)
	if added {
		e.Value = keyStats{}
	}
	e.Value.requests++
	return e
}

// most returns the n keys with the most refusals since tracking of them began, or fewer: the most
// refused first, and equals in the order of their keys.
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

// isNews reports whether a request of the key changes keyCounter: it is the first one, or a limit
// refuses it that has refused none before.
func (s *keyStats) isNews(refused uint64) bool {
	before := s.refusedBy
	news := !s.counted || before|refused != before
	s.counted, s.refusedBy = true, before|refused
	return news
}

// add counts a decision in a second since 1970.
func (s *keyStats) add(second int64, granted bool) {
	s.peak.Add(second)
	if granted {
		s.run = 0
		return
	}
	s.refused++
	s.run++
	s.longestRun = max(s.longestRun, s.run)
}
