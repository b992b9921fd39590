package replay

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
)

// Clients says what is remarkable about the clients of a log.
type Clients struct {
	// NoAddress counts the requests of clients that are not addresses, such as the names of hosts.
	// NoAddressExample is one of them.
	NoAddress        uint64 `json:"no_address"`
	NoAddressExample string `json:"no_address_example,omitempty"`
	// Private counts the requests of clients with private addresses.
	Private uint64 `json:"private"`
	// Proxies are the private addresses that proxies seem to have: nearest to the server first.
	// It is left out unless private addresses have most of the requests.
	Proxies []netip.Addr `json:"proxies,omitempty"`
	// Forwarded is what X-Forwarded-For has in a line. It is left out if no line has it. Behind counts
	// the addresses behind the proxies in the first lines.
	Forwarded string `json:"forwarded,omitempty"`
	Behind    int    `json:"behind"`
}

// proxies finds out from the first lines of a log which proxies the requests have passed.
type proxies struct {
	lines     int
	private   []netip.Addr // of proxies, in the order of their first appearance
	behind    map[netip.Addr]bool
	forwarded string // X-Forwarded-For of the first line in which it names a client behind proxies
}

// maxProxies is how many proxies are named one by one. proxyLines is how many lines are looked at.
const (
	maxProxies = 8
	proxyLines = 1000
)

// add looks at a request. Its proxies are the private addresses up to the first other one, from the
// peer on to the beginning of X-Forwarded-For.
func (p *proxies) add(rec *accesslog.Record) {
	p.lines++
	path := strings.Split(string(rec.Forwarded), ",")
	path = append(path, strings.Split(string(rec.Peer), ",")...)
	var passed []netip.Addr
	for _, entry := range slices.Backward(path) {
		a, ok := clientaddr.Parse(strings.TrimSpace(entry))
		if !ok {
			return
		}
		if isPrivate(a) {
			passed = append(passed, a)
			continue
		}
		if len(passed) > 0 {
			if p.behind == nil {
				p.behind = make(map[netip.Addr]bool)
			}
			if p.behind[a] = true; p.forwarded == "" {
				p.forwarded = strings.Join(path[:len(path)-1], ",")
			}
		}
		for _, a := range passed {
			if !slices.Contains(p.private, a) {
				p.private = append(p.private, a)
			}
		}
		return
	}
}

// sharedSpace is the network of the providers' NAT (RFC 6598), which clouds use for proxies.
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

func isPrivate(a netip.Addr) bool {
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || sharedSpace.Contains(a)
}

// clients returns what is remarkable about clients with their numbers of requests, besides a number
// of requests that are known to be from private addresses.
func (p *proxies) clients(private, requests uint64, each iter.Seq2[string, uint64]) Clients {
	c := Clients{Private: private}
	from := make(map[netip.Addr]uint64) // private addresses
	for text, n := range each {
		address, _, _ := strings.Cut(text, "/")
		a, err := netip.ParseAddr(address)
		switch {
		case err != nil:
			if c.NoAddress += n; c.NoAddressExample == "" || text < c.NoAddressExample {
				c.NoAddressExample = text
			}
		case isPrivate(a):
			c.Private += n
			from[a] += n
		}
	}
	if 2*c.Private <= requests {
		return c
	}
	if c.Proxies, c.Forwarded, c.Behind = p.private, p.forwarded, len(p.behind); p.forwarded == "" {
		for a, n := range from {
			if 2*n > requests {
				c.Proxies = []netip.Addr{a}
			}
		}
	}
	return c
}

// flag returns the --trusted-proxies that trusts the proxies, besides others that are trusted.
func (c *Clients) flag(trusted []netip.Prefix) string {
	var networks []string
	for _, n := range trusted {
		networks = append(networks, n.String())
	}
	add := func(n string) {
		if !slices.Contains(networks, n) {
			networks = append(networks, n)
		}
	}
	for _, a := range c.Proxies {
		switch {
		case slices.ContainsFunc(trusted, func(n netip.Prefix) bool { return n.Contains(a) }):
		case len(c.Proxies) <= maxProxies:
			add(a.String())
		default:
			add(privateNetwork(a).String())
		}
	}
	return "--trusted-proxies " + strings.Join(networks, ",")
}

// privateNetwork returns the private network that an address is in.
func privateNetwork(a netip.Addr) netip.Prefix {
	for _, n := range []string{
		"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "127.0.0.0/8",
		"fc00::/7", "fe80::/10", "::1/128",
	} {
		if n := netip.MustParsePrefix(n); n.Contains(a) {
			return n
		}
	}
	return netip.PrefixFrom(a, a.BitLen())
}

// write says what is remarkable, of a number of requests.
func (c *Clients) write(b *strings.Builder, requests uint64, trusted []netip.Prefix) {
	if n := c.NoAddress; n > 0 {
		fmt.Fprintf(b, "%s of %s requests have a client that is not an address, such as %s.\n",
			grouped(n), grouped(requests), keyText([]string{c.NoAddressExample}))
	}
	if len(c.Proxies) == 0 {
		return
	}
	fmt.Fprintf(b, "%s of %s requests come from private addresses such as %s, which may be a proxy.\n",
		grouped(c.Private), grouped(requests), c.Proxies[0])
	if c.Forwarded == "" {
		b.WriteString("The log does not show the clients behind it: log X-Forwarded-For, too.\n")
		return
	}
	fmt.Fprintf(b, "In X-Forwarded-For the first lines name %s %s behind it, as in %s."+
		" Believe it by\n  %s\n", grouped(c.Behind),
		plural(c.Behind, "client", "clients"), keyText([]string{c.Forwarded}),
		c.flag(trusted))
}
