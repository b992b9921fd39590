package replay

import (
	"fmt"
	"slices"
	"time"
)

const day = 24 * time.Hour

// maxBins is how many intervals a timeline has at most. A log of 512 seconds or more has at least a
// fifth as many.
const maxBins = 512

// binWidths are the widths of a bin. Each is a multiple of the one before, at most five times as
// long. With bins of the last one a timeline covers 504 years.
var binWidths = [...]time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 10 * day, 30 * day, 90 * day, 360 * day,
}

type bin struct{ granted, refused uint64 }

// timeline counts decisions over time in bounded memory. It begins with bins of one second.
// Whenever the log outgrows them, it takes the next width.
//
// Bins of any width are numbered from 1970. The bins of one width merge into bins of the next one,
// which is a multiple. Thus no count is ever split, and a bin covers the same seconds in every log.
type timeline struct {
	level int   // the index of the width
	first int64 // the number of the first bin
	bins  []bin
}

func (t *timeline) width() time.Duration { return binWidths[t.level] }

// add counts a decision in a second since 1970. Seconds never step back.
func (t *timeline) add(second int64, granted bool) {
	if len(t.bins) == 0 {
		t.first = second
	}
	n := second/int64(t.width()/time.Second) - t.first
	for ; n >= maxBins; n = second/int64(t.width()/time.Second) - t.first {
		t.widen()
	}
	for int64(len(t.bins)) <= n {
		t.bins = append(t.bins, bin{})
	}
	if granted {
		t.bins[n].granted++
	} else {
		t.bins[n].refused++
	}
}

// widen merges the bins into bins of the next width. It runs at most once for each width.
func (t *timeline) widen() {
	times := int64(binWidths[t.level+1] / t.width())
	merged := timeline{level: t.level + 1, first: t.first / times}
	for i, b := range t.bins {
		n := (t.first+int64(i))/times - merged.first
		merged.bins = append(merged.bins, make([]bin, n+1-int64(len(merged.bins)))...)
		merged.bins[n].granted += b.granted
		merged.bins[n].refused += b.refused
	}
	*t = merged
}

// table returns the counts of a log that was decided or not.
func (t *timeline) table(decided bool) table {
	width := t.width()
	all := table{ID: "time", Title: "Requests in each " + durationText(width), Of: "UTC, from",
		Head: []string{"requests"}, Chart: true}
	if decided {
		all.Head = append(all.Head, "refused")
	}
	for i, b := range t.bins {
		start := time.Unix((t.first+int64(i))*int64(width/time.Second), 0).UTC()
		cells := []string{grouped(b.granted + b.refused), grouped(b.refused)}
		all.add(dateTime(start), cells[:len(all.Head)]...)
	}
	return all
}

// burstTable has what each burst refuses at the suggested rate, up to the one that refuses nothing.
func (rep *Report) burstTable() table {
	t := table{ID: "bursts", Of: "burst", Head: []string{"clients"}, Chart: true}
	l, s := rep.Limit, rep.Suggestion
	if l == nil || s == nil {
		return t
	}
	t.Title, t.Share = fmt.Sprintf("What each burst refuses at %s", l.Rate), 100*s.Share
	bursts := burstsTo(max(l.Burst, s.found.ForClients(l.index, 0)))
	suggested, is := slices.BinarySearch(bursts, l.Burst)
	if !is {
		bursts = slices.Insert(bursts, suggested, l.Burst)
	}
	clients, requests := s.found.Refusals(l.index, bursts)
	if requests != nil {
		t.Head = append(t.Head, "requests")
	}
	for i, burst := range bursts {
		cells := []string{withShare(clients[i], s.found.Matter())}
		if requests != nil {
			cells = append(cells, withShare(requests[i], s.found.Requests()))
		}
		t.add(grouped(burst), cells...)
	}
	t.Rows[suggested].More = "suggested"
	return t
}

// withShare writes a count with its share of all, by which the page draws it.
func withShare(n, all uint64) string {
	return fmt.Sprintf("%s (%.2f %%)", grouped(n), 100*share(n, all))
}

// burstsTo returns bursts from 1 to greatest, each at most a tenth or 1 above the one before: about
// 200 up to the greatest burst of all.
func burstsTo(greatest uint64) (bursts []uint64) {
	for b := uint64(1); b < greatest; b += max(1, b/10) {
		bursts = append(bursts, b)
	}
	return append(bursts, greatest)
}
