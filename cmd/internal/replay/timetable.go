package replay

import (
	"time"
)

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
		b, start := t.bin(n), t.start(n)
		table.Rows = append(table.Rows, timeRow{
			dateTime(time.Unix(int64(start), 0).UTC()), start, count(b.granted + b.refused),
			count(b.refused), count(b.peak),
		})
	}
	return table
}
