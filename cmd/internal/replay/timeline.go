package replay

import (
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
)

const day = 24 * time.Hour

// maxBins is how many intervals a timeline has at most, a power of two. A log of 512
// seconds or more has at least a fifth as many.
const maxBins = 512

// binWidths are the widths of a bin. Each is a multiple of the one before, at most five times as
// long. With bins of the last one a timeline covers 504 years.
var binWidths = [...]time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 10 * day, 30 * day, 90 * day, 360 * day,
}

// bin counts the decisions in one interval.
type bin struct {
	granted, refused uint64
	peak             uint32 // the most requests in a second
}

// timeline counts decisions over time in bounded memory. It begins with bins of one
// second. Whenever the log outgrows them, at either end, it takes the next width.
//
// Bins of any width are numbered from 1970. The bins of one width merge into bins of the next one,
// which is a multiple. Thus no count is ever split, and a bin covers the same seconds in every log.
type timeline struct {
	level   int   // the index of the width
	lo, hi  int64 // the first and the last bin in use; lo > hi if there are none
	bins    [maxBins]bin
	seconds suggest.Peak
}

func newTimeline() *timeline { return &timeline{lo: 0, hi: -1} }

// width returns the width of a bin.
func (t *timeline) width() time.Duration { return binWidths[t.level] }

// number returns the number of the bin of a second since 1970.
func (t *timeline) number(second int64) int64 { return second / int64(t.width()/time.Second) }

// bin returns bin n, which must be in use. The array is a ring, so that the timeline can
// grow at both ends.
func (t *timeline) bin(n int64) *bin { return &t.bins[n&(maxBins-1)] }

// add counts a decision in a second since 1970.
func (t *timeline) add(second int64, granted bool) {
	n := t.number(second)
	if n < t.lo || n > t.hi {
		n = t.include(second)
	}
	b := t.bin(n)
	if granted {
		b.granted++
	} else {
		b.refused++
	}
	b.peak = max(b.peak, t.seconds.Add(second))
}

// include extends the bins in use to a second outside them. It returns the second's bin.
func (t *timeline) include(second int64) int64 {
	if t.lo > t.hi {
		t.lo, t.hi = second, second
	}
	for {
		n := t.number(second)
		lo, hi := min(t.lo, n), max(t.hi, n)
		if hi-lo < maxBins {
			t.lo, t.hi = lo, hi
			return n
		}
		t.widen()
	}
}

// widen merges the bins into bins of the next width. It runs at most once for each width.
func (t *timeline) widen() {
	var merged timeline
	times := int64(binWidths[t.level+1] / t.width())
	for n := t.lo; n <= t.hi; n++ {
		b := merged.bin(n / times)
		b.granted += t.bin(n).granted
		b.refused += t.bin(n).refused
		b.peak = max(b.peak, t.bin(n).peak)
	}
	t.bins, t.level, t.lo, t.hi = merged.bins, t.level+1, t.lo/times, t.hi/times
}

// timeTable has the counts of a log in intervals. The page draws its charts from it.
type timeTable struct {
	Caption string
	Width   float64 // of an interval, in seconds
	Refused bool    // the log was decided
	Busiest bool    // an interval is longer than a second
	Rows    []timeRow
}

// timeRow is an interval from a time in seconds since 1970 on.
type timeRow struct {
	Time                      string
	Start                     float64
	Requests, Refused, InASec cell // InASec is the most requests in a second
}

// cell is a number as text and as the value that is drawn.
type cell struct {
	Text  string
	Value float64
}

func count[N integer](n N) cell { return cell{grouped(n), float64(n)} }

// table returns the counts of a log that was decided or not.
func (t *timeline) table(decided bool) timeTable {
	table := timeTable{
		Caption: "Requests in each " + durationText(t.width()), Width: t.width().Seconds(),
		Refused: decided, Busiest: t.level > 0,
	}
	for n := t.lo; n <= t.hi; n++ {
		b, start := t.bin(n), float64(n)*t.width().Seconds()
		table.Rows = append(table.Rows, timeRow{
			dateTime(time.Unix(int64(start), 0).UTC()), start, count(b.granted + b.refused),
			count(b.refused), count(b.peak),
		})
	}
	return table
}
