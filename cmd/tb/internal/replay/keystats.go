package replay

import (
	"cmp"
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/spacesaving"
)

// maxTracked is how many keys have statistics of their own. One takes about 500 bytes, up
// to 256 bytes for each part of its key, and up to 8 KiB for its levels: 36 MB in all if
// every key sends requests all the time, and 4 MB if keys come and go.
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
	lows       lows
}

// ranking finds the keys that are refused most, in bounded memory.
type ranking struct{ *spacesaving.Summary[keyStats] }

func newRanking(bound int) ranking { return ranking{spacesaving.New[keyStats](bound)} }

// track counts a request of a key and returns its entry.
func (r ranking) track(key []byte) *tracked {
	e, added := r.See(key)
	if added {
		e.Value = keyStats{lows: e.Value.lows.emptied()}
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

// add counts a request in a second since 1970. It clears the counts of the seconds that
// leave the window.
func (p *peakCounter) add(second int64) {
	if second-p.newest >= peakWindow { // the whole window is past
		*p = peakCounter{newest: second, most: p.most}
	}
	for p.newest < second {
		p.newest++
		p.counts[p.newest%peakWindow] = 0
	}
	if second <= p.newest-peakWindow {
		return
	}
	n := &p.counts[second%peakWindow]
	*n++
	p.most = max(p.most, *n)
}

// lows has the fewest tokens that a key had left in each bin of a timeline. It holds only bins
// with a request, in the order of time.
type lows struct {
	shift  int
	points []low
}

// low is the fewest tokens that were left in a bin, in whole tokens.
type low struct{ bin, tokens int64 }

// emptied returns an empty lows that reuses the memory of l.
func (l lows) emptied() lows { return lows{points: l.points[:0]} }

// add records the tokens left at a second, in bins 1<<shift seconds wide. The bin is nearly
// always the last one or a new one behind it. A line out of order searches back.
func (l *lows) add(second int64, shift, tokens int) {
	l.coarsen(shift)
	n := second >> shift
	i := len(l.points)
	for i > 0 && l.points[i-1].bin > n {
		i--
	}
	if i > 0 && l.points[i-1].bin == n {
		p := &l.points[i-1]
		p.tokens = min(p.tokens, int64(tokens))
		return
	}
	l.points = slices.Insert(l.points, i, low{n, int64(tokens)})
}

// coarsen merges bins until each is 1<<shift seconds wide.
func (l *lows) coarsen(shift int) {
	if l.shift == shift {
		return
	}
	merged := l.points[:0]
	for _, p := range l.points {
		p.bin >>= shift - l.shift
		if last := len(merged) - 1; last >= 0 && merged[last].bin == p.bin {
			merged[last].tokens = min(merged[last].tokens, p.tokens)
		} else {
			merged = append(merged, p)
		}
	}
	l.points, l.shift = merged, shift
}
