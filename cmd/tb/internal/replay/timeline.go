package replay

import "time"

// maxBins is how many intervals the plots divide the time into at most, a power of
// two. There are at least half as many, once the log is long enough.
const maxBins = 512

// bin is what happened in one interval.
type bin struct{ granted, refused uint64 }

func (b bin) grants() uint64 { return b.granted }
func (b bin) total() uint64  { return b.granted + b.refused }

// timeline counts decisions over time in bounded memory. It begins with bins of one
// second and doubles their width whenever the log outgrows them, at either end.
//
// Bins are numbered from 1970, whatever their width, so that two neighbours of which the
// first has an even number become one of half that number. Thus no count is ever split,
// and a bin covers the same seconds in every log.
type timeline struct {
	shift  int   // a bin is 1<<shift seconds wide
	lo, hi int64 // the bins in use, numbered from 1970, lo > hi when there are none
	bins   [maxBins]bin
}

func newTimeline() *timeline { return &timeline{lo: 0, hi: -1} }

func (t *timeline) empty() bool { return t.lo > t.hi }

// width returns how long a bin is.
func (t *timeline) width() time.Duration { return time.Second << t.shift }

// at returns the bin with that number, which is in use. Neighbours are neighbours in
// the array too, around its end, so that it can grow at both ends.
func (t *timeline) at(n int64) *bin { return &t.bins[n&(maxBins-1)] }

// add counts a decision in a second since 1970.
func (t *timeline) add(second int64, granted bool) {
	n := second >> t.shift
	if n < t.lo || n > t.hi {
		n = t.include(second)
	}
	if granted {
		t.at(n).granted++
	} else {
		t.at(n).refused++
	}
}

// include makes room for a second outside the bins in use and returns its bin.
func (t *timeline) include(second int64) int64 {
	if t.empty() {
		t.lo, t.hi = second, second
	}
	for {
		n := second >> t.shift
		lo, hi := min(t.lo, n), max(t.hi, n)
		if hi-lo < maxBins {
			t.lo, t.hi = lo, hi
			return n
		}
		t.double()
	}
}

// double merges the bins in pairs. This happens at most once for each doubling of the
// time that the log covers, 25 times in 290 years.
func (t *timeline) double() {
	var merged timeline
	for n := t.lo; n <= t.hi; n++ {
		b := merged.at(n >> 1)
		b.granted += t.at(n).granted
		b.refused += t.at(n).refused
	}
	t.bins, t.shift, t.lo, t.hi = merged.bins, t.shift+1, t.lo>>1, t.hi>>1
}

// levels notes the fewest tokens that a key had left in each bin of a timeline. Only
// bins with a request are held, in the order of time.
type levels struct {
	shift  int
	points []level
}

// level is the fewest tokens that were left in a bin, in whole tokens.
type level struct{ bin, tokens int64 }

// emptied returns an empty levels that reuses the room of l.
func (l levels) emptied() levels { return levels{points: l.points[:0]} }

// add notes the tokens left at a second, in bins as wide as 1<<shift seconds. The bin
// is nearly always the last one or a new one behind it; lines out of order search back.
func (l *levels) add(second int64, shift, tokens int) {
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
	l.points = append(l.points, level{})
	copy(l.points[i+1:], l.points[i:])
	l.points[i] = level{n, int64(tokens)}
}

// coarsen merges bins until each is 1<<shift seconds wide.
func (l *levels) coarsen(shift int) {
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
