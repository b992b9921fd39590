package replay

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/internal/hash"
)

// forwarded are the clients that X-Forwarded-For names in a sample of the requests.
type forwarded struct {
	requests, with int                 // that were looked at, and the ones with the field
	clients        map[uint64]struct{} // hashes, at most maxForwarded
}

const maxForwarded = 1 << 12

func (f *forwarded) add(list []byte) {
	last := bytes.TrimSpace(list[bytes.LastIndexByte(list, ',')+1:])
	_, ok := clientaddr.Parse(string(last))
	if f.requests++; !ok { // the third field in quotes of a log may be another one
		return
	}
	if f.with++; len(f.clients) < maxForwarded {
		f.clients[hash.Mix(hash.Add(hash.Empty, last))] = struct{}{}
	}
}

// isUsual reports whether most requests come through a proxy that writes the field.
func (f *forwarded) isUsual() bool { return 2*f.with > f.requests }

// Clients says what is remarkable about the clients of a log.
type Clients struct {
	// Proxies are the addresses that send most, if a few have nearly all requests: they may be
	// proxies. Others is how many more addresses there are, because X-Forwarded-For says that all are
	// proxies. Requests counts the requests of the Proxies.
	Proxies  []string `json:"proxies,omitzero"`
	Others   int      `json:"others"`
	Requests uint64   `json:"requests"`
	// Forwarded is how many clients X-Forwarded-For names in a sample of the requests, up to 4,096.
	Forwarded int `json:"forwarded"`
}

const (
	// maxProxies is how many addresses may be proxies. More are the clients of an intranet.
	maxProxies = 8
	// mostPrivate and mostPublic are the parts of all requests that private and public proxies have.
	// Public addresses may be clients, so they need more.
	mostPrivate, mostPublic = 0.5, 0.9
	// muchMore is how many times the requests of another proxy the busiest one has at most.
	muchMore = 100
)

// providers are the addresses that clouds use for proxies (RFC 6598).
var providers = netip.MustParsePrefix("100.64.0.0/10")

func isPrivate(a netip.Addr) bool {
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || providers.Contains(a)
}

// fill looks at clients whose key has the address as a part. It reports whether they look like
// proxies, and not only like a few: they have private addresses, their requests have
// X-Forwarded-For, or many User-Agents.
func (c *Clients) fill(all uint64, clients *clients, part int, seen *forwarded) (likely bool) {
	public, private := make(map[string]uint64), make(map[string]uint64)
	several := make(map[string]bool) // clients with many User-Agents
	for key, cl := range clients.byKey {
		address := compositekey.Parts(key)[part]
		if a, ok := networkOf(address); ok && isPrivate(a.Addr()) {
			private[address] += cl.requests
		} else if address != "" {
			public[address] += cl.requests
		}
		if cl.habit.isMany() {
			several[address] = true
		}
	}
	c.Forwarded = len(seen.clients)
	switch {
	case len(private) <= maxProxies && c.take(private) > mostPrivate*float64(all):
		return true
	case all < minRequests:
	case c.take(public) >= mostPublic*float64(all):
		return seen.isUsual() ||
			!slices.ContainsFunc(c.Proxies, func(address string) bool { return !several[address] })
	case seen.isUsual():
		maps.Copy(public, private)
		c.take(public)
		c.Others = len(public) - len(c.Proxies)
		return len(c.Proxies) > 0
	}
	c.Proxies, c.Requests = nil, 0
	return false
}

// take takes the addresses that send most, without the ones that send far less than the first. It
// returns how many requests they have.
func (c *Clients) take(requests map[string]uint64) float64 {
	c.Proxies = slices.SortedFunc(maps.Keys(requests), func(a, b string) int {
		return cmp.Or(cmp.Compare(requests[b], requests[a]), cmp.Compare(a, b))
	})
	c.Proxies, c.Requests = c.Proxies[:min(len(c.Proxies), maxProxies)], 0
	c.Proxies = slices.DeleteFunc(c.Proxies, func(client string) bool {
		return muchMore*requests[client] < requests[c.Proxies[0]]
	})
	for _, client := range c.Proxies {
		c.Requests += requests[client]
	}
	slices.Sort(c.Proxies)
	return float64(c.Requests)
}

func networkOf(client string) (netip.Prefix, bool) {
	var network cli.Network
	err := network.UnmarshalText([]byte(client))
	return network.Prefix, err == nil
}

func (c *Clients) doubt(rep *Report) string {
	networks := cli.Prefixes(rep.options.Trusted)
	for _, client := range c.Proxies {
		if network, ok := networkOf(client); ok { // and not the name of a host
			networks = append(networks, network)
		}
	}
	flag := "--trusted-proxies " + listOf(networks)
	n := uint64(len(c.Proxies))
	text := fmt.Sprintf("%s %s, such as %s, %s %s of %s requests: proxies or a CDN, and not clients?",
		grouped(n), plural(n, "address", "addresses"), keyText(c.Proxies[:1]), plural(n, "has", "have"),
		grouped(c.Requests), grouped(rep.Requests))
	if c.Others > 0 {
		text += fmt.Sprintf(" %s more may be, too.", grouped(c.Others))
	}
	if c.Forwarded == 0 {
		return text + " The log has no X-Forwarded-For. With it, use " + flag
	}
	return text + fmt.Sprintf(" X-Forwarded-For names at least %s. Believe it by %s",
		counted(c.Forwarded, "client"), flag)
}
