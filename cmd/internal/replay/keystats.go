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
	suggest.Visits
	refused uint64 // requests
	peak    suggest.Peak
	visitor *visitor // to which they are added in the end; nil if there are too many
}

// ranking finds the keys with the most requests, in bounded memory.
type ranking struct{ *sketch.Summary[keyStats] }

func newRanking(bound int) ranking { return ranking{sketch.NewSummary[keyStats](bound)} }

// track counts a request of a key among all visitors, and returns its entry.
func (r ranking) track(key []byte, all *visitors) *tracked {
	e, added := r.See(key)
	if added {
		e.Value.end()
		e.Value = keyStats{visitor: all.of(key)}
	}
	e.Count++
	return e
}

// add adds the decision on a request for a path in a second since 1970.
func (s *keyStats) add(second int64, path uint32, granted bool) {
	s.peak.Add(second)
	s.Visit(path)
	if !granted {
		s.refused++
	}
}

// end ends the tracking of a key.
func (s *keyStats) end() {
	if v := s.visitor; v != nil {
		v.Join(s.Visits)
		v.refused += s.refused
		s.visitor = nil
	}
}

// top returns at most n keys: the ones that were refused most first, and equals by their requests.
func (r ranking) top(n int) []*tracked {
	all := slices.SortedFunc(r.All(), func(a, b *tracked) int {
		return cmp.Or(cmp.Compare(b.Value.refused, a.Value.refused),
			cmp.Compare(b.Value.Requests, a.Value.Requests), cmp.Compare(a.Key, b.Key))
	})
	return all[:min(n, len(all))]
}

// maxVisitors is how many keys a visitors has. Its counts are exact up to there. Beyond, it keeps
// between about half as many and all, so its counts of keys have a standard error of about 0.4 % at
// most. It takes about 12 MB.
const maxVisitors = 1 << 17

// visitors has what each key asks for, and how often it was refused, in bounded memory.
type visitors struct {
	sketch.Sample[uint64, *visitor]
}

type visitor struct {
	suggest.Visits
	refused uint64 // requests
}

func newVisitors(bound int) visitors {
	itself := func(h uint64) uint64 { return h }
	return visitors{sketch.NewSample[uint64, *visitor](bound, itself)}
}

// of returns the visitor with a key, or nil if the key is not in the sample.
func (v *visitors) of(key []byte) *visitor {
	h := hash.Mix(hash.Add(hash.Empty, key))
	found := v.Values[h]
	if found == nil && v.Takes(h) {
		found = new(visitor)
		v.Put(h, found)
	}
	return found
}

// keys returns the number of distinct keys. It is an estimate if OneIn is above 1.
func (v *visitors) keys() uint64 { return uint64(len(v.Values)) * v.OneIn() }
