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
