package replay

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/internal/suggest"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

// client is a key of a log with its requests, and what the limit does to them. A log may have a
// million, so its size counts.
type client struct {
	key      string
	requests uint64
	refused  uint64 // requests, or if they are not counted what it needs above the burst
	habit    *habit // nil if no request was looked at
	peak     peak
	path     uint32 // the hash of the first one
	number   uint32 // from 0 on
	several  bool   // whether there is another path
}

// visit counts a request for a path, by its hash, in a second since 1970.
func (c *client) visit(path uint32, second int64) {
	if c.requests == 0 {
		c.path = path
	}
	c.several = c.several || path != c.path
	c.requests++
	c.peak.add(second)
}

func (c *client) kind() suggest.Kind {
	switch {
	case c.several:
		return suggest.SeveralPaths
	case c.requests > 1:
		return suggest.OnePath
	}
	return suggest.OneRequest
}

// peak finds the most requests in one second of the log. Requests come in the order of their times.
type peak struct {
	most, n uint32
	second  uint32 // the latest, since 1970, modulo 2³²
}

// add counts a request in a second since 1970, and reports whether the second has the most so far.
func (p *peak) add(second int64) bool {
	if s := uint32(second); s != p.second {
		p.second, p.n = s, 0
	}
	p.n++
	higher := p.n > p.most
	p.most = max(p.most, p.n)
	return higher
}

// leastClients is how many clients of a log have counts at least, whatever bounds the limiter. They
// take about 25 MB.
const leastClients = 1 << 17

type clients struct {
	byKey map[string]*client
	bound int  // of their number
	more  bool // whether there are more
}

// of returns the client with a key. Beyond the bound it is a new one that is in no count.
func (cs *clients) of(key []byte) *client {
	c := cs.byKey[string(key)] // does not allocate
	if c == nil {
		c = &client{key: string(key), number: uint32(len(cs.byKey))}
		if len(cs.byKey) == cs.bound {
			cs.more = true
			return c
		}
		cs.byKey[c.key] = c
	}
	return c
}

func (cs *clients) fill(rep *Report) {
	rep.Kinds = kindsOf(cs.byKey, rep.Limit)
	var top []*client // in their order
	for _, c := range cs.byKey {
		if c.refused > 0 {
			rep.Limit.KeysRefused++
		}
		i, _ := slices.BinarySearchFunc(top, c, func(a, b *client) int {
			return cmp.Or(cmp.Compare(b.refused, a.refused), cmp.Compare(b.requests, a.requests),
				cmp.Compare(a.key, b.key))
		})
		if i < topKeys {
			top = slices.Insert(top[:min(len(top), topKeys-1)], i, c)
		}
	}
	for _, c := range top {
		k := TopKey{
			Key: compositekey.Parts(c.key), Requests: c.requests, Refused: c.refused,
			Peak: c.peak.most, Habit: c.habit.String(),
		}
		if rep.Limit.Uncounted {
			k.Refused = 0
		}
		rep.Top = append(rep.Top, k)
	}
}

func (cs *clients) kinds() []suggest.Kind {
	kinds := make([]suggest.Kind, len(cs.byKey))
	for _, c := range cs.byKey {
		kinds[c.number] = c.kind()
	}
	return kinds
}

// check returns an error if there are more clients than the bound. The name is what looks at all
// clients.
func (cs *clients) check(name string) error {
	if !cs.more {
		return nil
	}
	return fmt.Errorf("the log has more than %s keys, and %s looks at all of them:"+
		" want a greater --max-keys", grouped(cs.bound), name)
}

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
func kindsOf(clients map[string]*client, l *Limit) (kinds []Kind) {
	all := [suggest.Kinds + 1]Kind{{Kind: "several paths"}, {Kind: "one path"}, {Kind: "one request"},
		{Kind: "more than " + counted(l.Burst, "request")}}
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
		if c.requests > l.Burst {
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
