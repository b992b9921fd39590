package replay

import (
	"cmp"
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/spacesaving"
)

// maxTracked is how many keys have statistics of their own. One takes about 600 bytes, up
// to 256 bytes for each part of its key, and for a picture up to 8 KiB for its windows: 36 MB
// in all if every key sends requests all the time, and 4 MB if keys come and go.
const maxTracked = 4096

// tracked is a key that has statistics. Its Count is the number of its refusals.
type tracked = spacesaving.Entry[keyStats]

// keyStats has the statistics of a key since tracking of it began.
type keyStats struct {
	requests   uint64
	refused    uint64
	run        uint64 // refusals in a row, up to now
	longestRun uint64
	peak       peakCounter
	zoom       zoom // empty unless there is a picture
}

// ranking finds the keys that are refused most, in bounded memory.
type ranking struct{ *spacesaving.Summary[keyStats] }

func newRanking(bound int) ranking { return ranking{spacesaving.New[keyStats](bound)} }

// track counts a request of a key and returns its entry.
func (r ranking) track(key []byte) *tracked {
	e, added := r.See(key)
	if added {
		e.Value = keyStats{zoom: e.Value.zoom.emptied()}
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

// peakWindow is how many seconds back a line may step and still count. In a log of Apache, which
// stamps a line with the start of its request, this is the longest request that counts.
const peakWindow = 64

// peakCounter finds the most requests that a key sent in one second. Lines may be out of
// order within a window of peakWindow seconds. A line older than the window is not counted.
type peakCounter struct {
	newest int64              // the latest second seen
	counts [peakWindow]uint32 // by second, modulo peakWindow, up to the newest
	most   uint32
}

// add counts a request in a second since 1970, and returns how many requests the second has now.
// It clears the counts of the seconds that leave the window.
func (p *peakCounter) add(second int64) uint32 {
	if second-p.newest >= peakWindow { // the whole window is past
		*p = peakCounter{newest: second, most: p.most}
	}
	for p.newest < second {
		p.newest++
		p.counts[p.newest%peakWindow] = 0
	}
	if second <= p.newest-peakWindow {
		return 0
	}
	n := &p.counts[second%peakWindow]
	*n++
	p.most = max(p.most, *n)
	return *n
}
