package replay

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

// Clients says what is remarkable about the clients of a log.
type Clients struct {
	// Private counts the requests of clients with private addresses.
	Private uint64 `json:"private"`
	// Proxies are these clients, if they have most of the requests and are at most eight: they may be
	// proxies.
	Proxies []netip.Prefix `json:"proxies,omitzero"`
}

// maxProxies is how many private addresses may be proxies. More are the clients of an intranet.
const maxProxies = 8

// providers are the addresses that clouds use for proxies (RFC 6598).
var providers = netip.MustParsePrefix("100.64.0.0/10")

func isPrivate(a netip.Addr) bool {
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || providers.Contains(a)
}

// fill counts the requests of keys, of which a part is the client.
func (c *Clients) fill(requests uint64, keys iter.Seq2[string, uint64], part int) {
	for key, n := range keys {
		var client cli.Network
		err := client.UnmarshalText([]byte(compositekey.Parts(key)[part]))
		if err != nil || !isPrivate(client.Addr()) {
			continue
		}
		if c.Private += n; len(c.Proxies) <= maxProxies && !slices.Contains(c.Proxies, client.Prefix) {
			c.Proxies = append(c.Proxies, client.Prefix)
		}
	}
	if 2*c.Private <= requests || len(c.Proxies) > maxProxies {
		c.Proxies = nil
	}
	slices.SortFunc(c.Proxies, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
}

// write says what is remarkable about the clients of a number of requests.
func (c *Clients) write(b *strings.Builder, requests uint64, trusted []netip.Prefix) {
	if len(c.Proxies) == 0 {
		return
	}
	fmt.Fprintf(b, "%s of %s requests come from private addresses, which may be proxies.\n"+
		"If the log has X-Forwarded-For, believe it by --trusted-proxies %s\n", grouped(c.Private),
		grouped(requests), listOf(slices.Concat(trusted, c.Proxies), ","))
}
