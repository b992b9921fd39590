package replay

import (
	"fmt"
	"math"

	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
)

// Kind is a kind of clients, and whom of them the limit refuses.
type Kind struct {
	// Kind is "several paths", "one path", "one request" or, for the clients that the limit can refuse,
	// "more than n requests". The last one has clients of the others.
	Kind string `json:"kind"`
	// Matters reports that the share of --suggest is a share of these clients.
	Matters bool `json:"matters"`
	// Clients and Requests are of this kind. RequestsRefused is 0 if the limit is Uncounted.
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

// add counts a client.
func (k *kinds) add(c *client) {
	k.clients[c.Kind()]++
	k.list[c.Kind()].count(c)
	if c.Requests > k.many {
		k.list[suggest.Kinds].count(c)
	}
}

func (k *Kind) count(c *client) {
	k.Clients++
	k.Requests += c.Requests
	k.RequestsRefused += c.refused
	if c.isHit() {
		k.ClientsRefused++
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
