package replay

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

type table struct {
	ID, Title string
	Head      []string // of the cells
	Of        string   // the head of what a row is of
	Rows      []row
	Note      string  // lines below the table
	Chart     bool    // whether the page draws it
	Share     float64 // of --suggest in percent, for the chart of bursts
}

// row has what it is of, what is known of that, and cells, which are right-aligned.
type row struct {
	Of, More string
	Cells    []string
}

func (t *table) add(of string, cells ...string) {
	t.Rows = append(t.Rows, row{Of: of, Cells: cells})
}

// write writes the table under its title, or nothing if it has no row.
func (t table) write(b *strings.Builder) {
	if len(t.Rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n", t.Title)
	columns := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, r := range append([]row{{t.Of, "", t.Head}}, t.Rows...) {
		text := strings.TrimSpace(r.Of + "  " + r.More)
		fmt.Fprintf(columns, "%s\t  %s\n", strings.Join(r.Cells, "\t"), text)
	}
	columns.Flush()
	if t.Note != "" {
		b.WriteString("\n" + t.Note)
	}
}

func (rep *Report) kindTable() table {
	t := table{ID: "kinds", Title: "Whom the limit refuses", Of: "asking for", Head: []string{
		rep.thing() + "s", "refused", "share", "requests", "refused", "share"}}
	for _, k := range rep.Kinds {
		refused, part := "-", "-"
		if !rep.Limit.Uncounted {
			refused, part = grouped(k.RequestsRefused), percent(share(k.RequestsRefused, k.Requests))
		}
		t.add(k.Kind, grouped(k.Clients), grouped(k.ClientsRefused),
			percent(share(k.ClientsRefused, k.Clients)), grouped(k.Requests), refused, part)
		if k.Matters && rep.Suggestion != nil {
			t.Rows[len(t.Rows)-1].More = fmt.Sprintf("(at most %v %%)", 100*rep.Suggestion.Share)
		}
	}
	return t
}

func (rep *Report) clientTable(n int) table {
	t := table{ID: "clients", Title: "The clients that are refused most, and then send most",
		Of: rep.thing(), Head: []string{"requests", "refused", "in a second"}}
	for _, k := range rep.Top[:min(len(rep.Top), n)] {
		refused := grouped(k.Refused)
		if rep.Limit.Uncounted {
			refused = "-"
		}
		t.add(keyText(k.Key), grouped(k.Requests), refused, grouped(k.Peak))
		t.Rows[len(t.Rows)-1].More = k.Habit
	}
	return t
}

// otherTables has the tables that flags have asked for. Some may be empty.
func (rep *Report) otherTables() []table {
	return append(rep.Policy.tables(), rep.algorithmTable(), rep.pathTable())
}
