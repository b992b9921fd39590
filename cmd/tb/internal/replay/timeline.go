package replay

import "time"

// maxBins is how many intervals a timeline has at most, a power of two. A log of 512
// seconds or more has at least half as many.
const maxBins = 512

// bin counts the decisions in one interval.
type bin struct {
	granted, refused uint64
	peak             uint32 // the most requests in a second
}

func (b bin) justGranted() uint64 { return b.granted }
func (b bin) total() uint64       { return b.granted + b.refused }
func (b bin) busiest() uint64     { return uint64(b.peak) }

// timeline counts decisions over time in bounded memory. It begins with bins of one
// second. Whenever the log outgrows them, at either end, it doubles their width.
//
// Bins of any width are numbered from 1970. Bins 2n and 2n+1 merge into bin n of twice the
// width. Thus no count is ever split, and a bin covers the same seconds in every log.
type timeline struct {
	shift   int   // a bin is 1<<shift seconds wide
	lo, hi  int64 // the first and the last bin in use; lo > hi if there are none
	bins    [maxBins]bin
	seconds peakCounter
}

func newTimeline() *timeline { return &timeline{lo: 0, hi: -1} }

func (t *timeline) empty() bool { return t.lo > t.hi }

// width returns the width of a bin.
func (t *timeline) width() time.Duration { return time.Second << t.shift }

// start returns when a bin begins, in seconds since 1970.
func (t *timeline) start(n int64) float64 { return float64(n << t.shift) }

// bin returns bin n, which must be in use. The array is a ring, so that the timeline can
// grow at both ends.
func (t *timeline) bin(n int64) *bin { return &t.bins[n&(maxBins-1)] }

// add counts a decision in a second since 1970.
func (t *timeline) add(second int64, granted bool) {
	n := second >> t.shift
	if n < t.lo || n > t.hi {
		n = t.include(second)
	}
	b := t.bin(n)
	if granted {
		b.granted++
	} else {
		b.refused++
	}
	b.peak = max(b.peak, t.seconds.add(second))
}

// include extends the bins in use to a second outside them. It returns the second's bin.
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

// double merges the bins in pairs. It runs at most once for each doubling of the time that
// the log covers: 25 times in 290 years.
func (t *timeline) double() {
	var merged timeline
	for n := t.lo; n <= t.hi; n++ {
		b := merged.bin(n >> 1)
		b.granted += t.bin(n).granted
		b.refused += t.bin(n).refused
		b.peak = max(b.peak, t.bin(n).peak)
	}
	t.bins, t.shift, t.lo, t.hi = merged.bins, t.shift+1, t.lo>>1, t.hi>>1
}
