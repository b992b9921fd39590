package replay

import (
	"fmt"
	"strings"
	"time"
)

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

func timeCell(t time.Time) cell { return cell{dateTime(t), float64(t.Unix())} }

// keyTable returns the keys refused most, or the clients that a suggested limit refuses.
func (res *Result) keyTable() keyTable {
	if s := res.Report.Suggestion; s != nil {
		return s.keyTable()
	}
	keys := res.replayer.ranking.most(pageKeys)
	t := keyTable{
		Caption: "No key is refused",
		Columns: []string{"Key", "Refused", "Requests", "Share", "Peak in a second", "Longest run"},
		Sorted:  1,
	}
	if n := len(keys); n > 0 {
		t.Caption = fmt.Sprintf("%d %s refused most", n, plural(n, "key", "keys"))
	}
	for _, e := range keys {
		k := res.replayer.topKey(e)
		refused := share(k.Refused, k.Requests)
		t.Rows = append(t.Rows, keyRow{
			Key: clientText(k.Key, k.Name, Habit{}), Habit: k.habitText(), Cells: []cell{
				count(k.Refused, k.RefusedMost > k.Refused), count(k.Requests, k.Partial),
				{percent(refused), refused}, count(k.Peak, false), count(k.LongestRun, false),
			}})
	}
	return t
}

// keyTable returns the clients that the suggested limit refuses.
func (s *Suggestion) keyTable() keyTable {
	t := keyTable{
		Caption: "No limit is suggested",
		Columns: []string{"Key", "Burst needed", "Requests", "Peak in a second", "First", "Last"},
		Sorted:  1,
	}
	if s.Limit == nil {
		return t
	}
	l := s.Limit
	t.Caption = fmt.Sprintf("%d of %s %s that a limit of %s, burst %s refuses",
		min(l.Refused, pageKeys), grouped(l.Refused), plural(l.Refused, "client", "clients"),
		l.Rate, grouped(l.Burst))
	for _, c := range l.clients {
		needed := count(c.Need, false)
		if c.Need == 0 { // no burst is enough
			needed = cell{burstText(c.Need), 1 << 31}
		}
		t.Rows = append(t.Rows, keyRow{
			Key: clientText(c.Key, c.Name, Habit{}), Habit: c.habitText(),
			Hidden: c.Need > 0 && c.Need <= l.Burst, Needs: strings.Trim(fmt.Sprint(c.needs), "[]"),
			Cells: []cell{needed, count(c.Requests, false), count(c.Peak, false),
				timeCell(c.First), timeCell(c.Last)},
		})
	}
	return t
}
