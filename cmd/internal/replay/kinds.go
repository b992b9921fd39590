package replay

import (
	"fmt"
	"math"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
)

// Kind is a kind of clients, and whom of them the limit refuses.
type Kind struct {
	// Kind is "several paths", "one path", "one request" or, for the clients that the limit can refuse,
	// "more than n requests". The last one has clients of the others.
	Kind string `json:"kind"`
	// Matters reports that the share of --suggest is a share of these clients.
	Matters bool `json:"matters"`
	// Clients and Requests are of this kind. Beyond 131,072 clients they are estimates, unless a limit
	// is suggested. RequestsRefused is 0 if the limit is Uncounted.
	Clients         uint64 `json:"clients"`
	ClientsRefused  uint64 `json:"clients_refused"`
	Requests        uint64 `json:"requests"`
	RequestsRefused uint64 `json:"requests_refused"`
}

// kinds counts clients by their kind.
type kinds struct {
	list    [suggest.Kinds + 1]Kind // the last one is for many requests
	clients [suggest.Kinds]uint64
	many    uint64 // more requests than the limit grants at once
	refused uint64 // clients
}

// newKinds returns empty counts for a burst.
func newKinds(burst uint64, cost Cost) *kinds {
	k := &kinds{many: math.MaxUint64} // if the costs vary
	if cost.constant > 0 {
		k.many = uint64(float64(burst) / cost.constant)
	}
	for i, name := range []string{"several paths", "one path", "one request"} {
		k.list[i].Kind = name
	}
	k.list[suggest.Kinds].Kind = fmt.Sprintf("more than %s %s", grouped(k.many),
		plural(k.many, "request", "requests"))
	return k
}

// add adds a client that stands for a number of clients. It is refused, and so are some requests.
func (k *kinds) add(v *suggest.Visits, kind suggest.Kind, oneIn uint64, refused bool, n uint64) {
	k.clients[kind] += oneIn
	if refused {
		k.refused += oneIn
	}
	count := func(row *Kind) {
		row.Clients += oneIn
		row.Requests += v.Requests * oneIn
		row.RequestsRefused += n * oneIn
		if refused {
			row.ClientsRefused += oneIn
		}
	}
	if count(&k.list[kind]); v.Requests > k.many {
		count(&k.list[suggest.Kinds])
	}
}

// all returns the kinds that have clients.
func (k *kinds) all() []Kind {
	list := []Kind{}
	for i, row := range k.list {
		if kind := suggest.Kind(i); kind < suggest.Kinds {
			row.Matters = kind.Matters(k.clients)
		}
		if row.Clients > 0 {
			list = append(list, row)
		}
	}
	return list
}

// kindTable returns a table of the kinds of clients. The first cells are numbers.
func (rep *Report) kindTable() (head []string, rows []clientRow) {
	for _, k := range rep.Kinds {
		row := clientRow{Client: k.Kind, Cells: []string{
			grouped(k.Clients), grouped(k.ClientsRefused), percent(share(k.ClientsRefused, k.Clients)),
			grouped(k.Requests), "-", "-",
		}}
		if !rep.Limit.Uncounted {
			row.Cells[4] = grouped(k.RequestsRefused)
			row.Cells[5] = percent(share(k.RequestsRefused, k.Requests))
		}
		if k.Matters && rep.Suggestion != nil {
			row.Habit = fmt.Sprintf("(at most %v %%)", 100*rep.Suggestion.Share)
		}
		rows = append(rows, row)
	}
	return []string{rep.keyWord(2), "refused", "share", "requests", "refused", "share"}, rows
}

// writeTable writes a table whose first cells are numbers, under a title.
func writeTable(b *strings.Builder, title string, head []string, last string, rows []clientRow) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n", title)
	table := columns(b)
	for _, row := range append([]clientRow{{head, last, ""}}, rows...) {
		text := strings.TrimSpace(row.Client + "  " + row.Habit)
		fmt.Fprintf(table, "%s\t  %s\n", strings.Join(row.Cells, "\t"), text)
	}
	table.Flush()
}
