package replay

import (
	"fmt"
	"math"

	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
)

// Kind is a kind of clients, and whom of them the limit refuses.
type Kind struct {
	// Kind is "several paths", "one path", "one request" or, for the clients that the limit can
	// refuse, "more than n requests". The last one has clients of the others.
	Kind string `json:"kind"`
	// Matters reports that the share of --suggest is a share of these clients.
	Matters bool `json:"matters"`
	// Clients and Requests are of this kind. RequestsRefused is 0 if the limit is Uncounted.
	Clients         uint64 `json:"clients"`
	ClientsRefused  uint64 `json:"clients_refused"`
	Requests        uint64 `json:"requests"`
	RequestsRefused uint64 `json:"requests_refused"`
}

// kindsOf returns the kinds of clients that there are, and whom of them a limit refuses.
func kindsOf(clients map[string]*client, l *Limit, cost Cost) (kinds []Kind) {
	many := uint64(math.MaxUint64) // more requests than the limit grants at once
	if cost.constant > 0 {
		many = uint64(float64(l.Burst) / cost.constant)
	}
	all := [suggest.Kinds + 1]Kind{{Kind: "several paths"}, {Kind: "one path"}, {Kind: "one request"},
		{Kind: fmt.Sprintf("more than %s %s", grouped(many), plural(many, "request", "requests"))}}
	count := func(k *Kind, c *client) {
		k.Clients++
		k.Requests += c.requests
		if c.refused > 0 {
			k.ClientsRefused++
		}
		if !l.Uncounted {
			k.RequestsRefused += c.refused
		}
	}
	for _, c := range clients {
		count(&all[c.kind()], c)
		if c.requests > many {
			count(&all[suggest.Kinds], c)
		}
	}
	var counts [suggest.Kinds]uint64
	for kind := range suggest.Kinds {
		counts[kind] = all[kind].Clients
	}
	kinds = []Kind{}
	for i, k := range all {
		kind := suggest.Kind(i)
		k.Matters = kind < suggest.Kinds && kind.Matters(counts)
		if k.Clients > 0 {
			kinds = append(kinds, k)
		}
	}
	return kinds
}
