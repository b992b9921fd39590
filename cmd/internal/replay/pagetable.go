package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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

// table returns the counts of a log that was decided or not.
func (t *timeline) table(decided bool) timeTable {
	table := timeTable{
		Caption: "Requests in each " + interval(t.width()), Width: t.width().Seconds(),
		Refused: decided, Busiest: t.level > 0,
	}
	for n := t.lo; n <= t.hi; n++ {
		b, start := t.bin(n), t.start(n)
		table.Rows = append(table.Rows, timeRow{
			dateTime(time.Unix(int64(start), 0).UTC()), start, count(b.granted+b.refused, false),
			count(b.refused, false), count(b.peak, false),
		})
	}
	return table
}

// interval writes a duration in words if it is a whole number of a unit: minute, 15 minutes.
func interval(d time.Duration) string {
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"day", day}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		switch n := d / unit.length; {
		case d%unit.length != 0 || n == 0:
		case n == 1:
			return unit.name
		default:
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return durationText(d)
}

// burstTable has the least bursts for shares of the clients, the lowest rate first. The page draws
// a chart from it.
type burstTable struct {
	Shares []string
	Chosen int // the index of the share of the flag
	Rows   []burstRow
}

type burstRow struct {
	Rate      string
	PerSecond float64
	Suggested uint64 // the suggested burst, if the rate is the suggested one
	Bursts    []cell // 0 if no burst is enough
}

func (s *Suggestion) burstTable() *burstTable {
	t := &burstTable{}
	for i, share := range s.share.columns() {
		if t.Shares = append(t.Shares, share.String()); share == s.share {
			t.Chosen = i
		}
	}
	for i, r := range s.Rates {
		row := burstRow{Rate: r.Rate, PerSecond: r.rate.approximate()}
		if s.Limit != nil && s.Limit.index == i {
			row.Suggested = s.Limit.Burst
		}
		for _, b := range r.Clients {
			row.Bursts = append(row.Bursts, cell{burstText(b.Burst), float64(b.Burst)})
		}
		t.Rows = append(t.Rows, row)
	}
	slices.SortStableFunc(t.Rows, func(a, b burstRow) int {
		return cmp.Compare(a.PerSecond, b.PerSecond)
	})
	return t
}

// pageKeys is how many keys the table of the page has at most.
const pageKeys = 100

// keyTable is a table of keys. The rows are in descending order of the column Sorted.
type keyTable struct {
	Caption string
	Columns []string
	Sorted  int
	Rows    []keyRow
}

// keyRow is a row. Its cells belong to the columns behind the key.
type keyRow struct {
	Key   string
	Habit string // what is known of a client
	Cells []cell
	// Needs has the burst that a client needs at each rate of a suggestion, 0 if none is enough.
	// Hidden is the row of a client that the suggested limit does not refuse.
	Needs  string
	Hidden bool
}

// cell is a number as text and as the value by which it is sorted.
type cell struct {
	Text  string
	Value float64
}

// count returns the cell of a count that may be a lower bound.
func count[N integer](n N, lowerBound bool) cell {
	return cell{atLeast(lowerBound) + grouped(n), float64(n)}
}

// keyTable returns the keys that are refused most or, under a suggested limit, the clients that it
// refuses by the bursts that they need.
func (res *Result) keyTable() keyTable {
	t := keyTable{
		Caption: "No key is refused", Sorted: 1,
		Columns: []string{"Key", "Refused", "Requests", "Peak in a second"},
	}
	limit := res.Report.suggestedLimit()
	switch n := len(res.keys); {
	case limit != nil:
		t.Columns[1], t.Caption = "Burst needed", limit.caption()
	case res.Report.Suggestion != nil:
		t.Caption = "No limit is suggested"
	case n > 0:
		t.Caption = fmt.Sprintf("%d %s refused most", n, plural(n, "key", "keys"))
	}
	for _, k := range res.keys {
		row := keyRow{Key: keyText(k.Key), Habit: k.text(), Cells: []cell{
			count(k.Refused, k.RefusedMost > k.Refused), count(k.Requests, k.Partial), count(k.Peak, false),
		}}
		if limit != nil {
			row.Hidden = k.Need > 0 && k.Need <= limit.Burst
			row.Needs = strings.Trim(fmt.Sprint(k.needs), "[]")
			if row.Cells[0] = count(k.Need, false); k.Need == 0 { // no burst is enough
				row.Cells[0] = cell{burstText(k.Need), 1 << 31}
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// caption says how many clients the limit refuses, of which a page has pageKeys at most.
func (l *SuggestedLimit) caption() string {
	limit := fmt.Sprintf("limit of %s, burst %s", l.Rate, grouped(l.Burst))
	if l.Refused == 0 {
		return "A " + limit + " refuses no client"
	}
	return fmt.Sprintf("%d of %s %s that a %s refuses", min(l.Refused, pageKeys),
		grouped(l.Refused), plural(l.Refused, "client", "clients"), limit)
}
