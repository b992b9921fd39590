package replay

import (
	"fmt"
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

	busiest netip.Addr // the private address with the most requests
	most    uint64     // its requests
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

// privateNetworks are the networks of addresses that are not public. Clouds use the one of the
// providers' NAT (RFC 6598), 100.64.0.0/10, for proxies.
var privateNetworks = networksOf("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10",
	"169.254.0.0/16", "127.0.0.0/8", "fc00::/7", "fe80::/10", "::1/128")

func networksOf(texts ...string) (networks []netip.Prefix) {
	for _, text := range texts {
		networks = append(networks, netip.MustParsePrefix(text))
	}
	return networks
}

func isPrivate(a netip.Addr) bool { return contain(privateNetworks, a) }

func contain(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// add counts the requests of a client.
func (c *Clients) add(text string, requests uint64) {
	address, _, _ := strings.Cut(text, "/")
	a, err := netip.ParseAddr(address)
	switch {
	case text == "": // Missing counts these
	case err != nil:
		if c.NoAddress += requests; c.NoAddressExample == "" || text < c.NoAddressExample {
			c.NoAddressExample = text
		}
	case isPrivate(a):
		if c.Private += requests; requests > c.most {
			c.most, c.busiest = requests, a
		}
	}
}

// fill names the proxies if private addresses have most of the requests.
func (p *proxies) fill(rep *Report) {
	c := &rep.Clients
	if 2*c.Private <= rep.Requests {
		return
	}
	if c.Proxies, c.Forwarded, c.Behind = p.private, p.forwarded, len(p.behind); p.forwarded == "" {
		if c.Proxies = nil; 2*c.most > rep.Requests {
			c.Proxies = []netip.Addr{c.busiest}
		}
	}
}

// flag returns the --trusted-proxies that trusts the proxies, besides others that are trusted.
func (c *Clients) flag(trusted []netip.Prefix) string {
	networks := slices.Clone(trusted)
	for _, a := range c.Proxies {
		network := netip.PrefixFrom(a, a.BitLen())
		for _, n := range privateNetworks {
			if len(c.Proxies) > maxProxies && n.Contains(a) {
				network = n
			}
		}
		if !contain(networks, a) {
			networks = append(networks, network)
		}
	}
	return "--trusted-proxies " + listOf(networks, ",")
}

// write says what is remarkable.
func (c *Clients) write(b *strings.Builder, rep *Report) {
	if n := c.NoAddress; n > 0 {
		fmt.Fprintf(b, "%s of %s requests have a client that is not an address, such as %s.\n",
			grouped(n), grouped(rep.Requests), keyText([]string{c.NoAddressExample}))
		if l := rep.suggestedLimit(); l != nil && l.Policy != nil {
			b.WriteString("A replay of the policy has one bucket for all such clients.\n")
		}
	}
	if len(c.Proxies) == 0 {
		return
	}
	fmt.Fprintf(b, "%s of %s requests come from private addresses such as %s, which may be a proxy.\n",
		grouped(c.Private), grouped(rep.Requests), c.Proxies[0])
	if c.Forwarded == "" {
		b.WriteString("The log does not show the clients behind it: log X-Forwarded-For, too.\n")
		return
	}
	fmt.Fprintf(b, "In X-Forwarded-For the first lines name %s %s behind it, as in %s."+
		" Believe it by\n  %s\n", grouped(c.Behind), plural(c.Behind, "client", "clients"),
		keyText([]string{c.Forwarded}), c.flag(rep.trusted))
}
