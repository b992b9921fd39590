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

// keyTable returns the keys refused most, or the clients that a suggested limit refuses.
func (res *Result) keyTable() keyTable {
	rep := &res.Report
	if rep.Suggestion != nil {
		return res.clientTable()
	}
	t := keyTable{
		Caption: "No key is refused",
		Columns: []string{"Key", "Refused", "Requests", "Share", "Peak in a second"},
		Sorted:  1,
	}
	if n := len(res.keys); n > 0 {
		t.Caption = fmt.Sprintf("%d %s refused most", n, plural(n, "key", "keys"))
	}
	for _, k := range res.keys {
		refused := share(k.Refused, k.Requests)
		t.Rows = append(t.Rows, keyRow{
			Key: keyText(k.Key), Habit: k.Habit.String(), Cells: []cell{
				count(k.Refused, k.RefusedMost > k.Refused), count(k.Requests, k.Partial),
				{percent(refused), refused}, count(k.Peak, false),
			}})
	}
	return t
}

// clientTable returns the clients that the suggested limit refuses.
func (res *Result) clientTable() keyTable {
	t := keyTable{
		Caption: "No limit is suggested",
		Columns: []string{"Key", "Burst needed", "Requests", "Peak in a second"},
		Sorted:  1,
	}
	l := res.Report.Suggestion.Limit
	if l == nil {
		return t
	}
	limit := fmt.Sprintf("limit of %s, burst %s", l.Rate, grouped(l.Burst))
	t.Caption = "A " + limit + " refuses no client"
	if l.Refused > 0 {
		t.Caption = fmt.Sprintf("%d of %s %s that a %s refuses", min(l.Refused, pageKeys),
			grouped(l.Refused), plural(l.Refused, "client", "clients"), limit)
	}
	for _, k := range res.keys {
		needed := count(k.Need, false)
		if k.Need == 0 { // no burst is enough
			needed = cell{burstText(k.Need), 1 << 31}
		}
		t.Rows = append(t.Rows, keyRow{
			Key: keyText(k.Key), Habit: k.Habit.String(),
			Hidden: k.Need > 0 && k.Need <= l.Burst, Needs: strings.Trim(fmt.Sprint(k.needs), "[]"),
			Cells: []cell{needed, count(k.Requests, false), count(k.Peak, false)},
		})
	}
	return t
}
