package replay

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

// Clients says what is remarkable about the clients of a log.
type Clients struct {
	// Private counts the requests of clients with private addresses.
	Private uint64 `json:"private"`
	// Proxy is the private address with the most requests, which may be a proxy. It is left out unless
	// a few private addresses have most of the requests.
	Proxy netip.Addr `json:"proxy,omitzero"`
}

// maxProxies is how many private addresses may be proxies. More are the clients of an intranet.
const maxProxies = 8

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

// privateNetwork returns the index of the private network that has an address, -1 if there is none.
func privateNetwork(a netip.Addr) int {
	return slices.IndexFunc(privateNetworks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// fill counts the requests of keys, of which a part is the client.
func (c *Clients) fill(requests uint64, keys iter.Seq2[string, uint64], part int) {
	var most, addresses uint64
	for key, n := range keys {
		address, _, _ := strings.Cut(compositekey.Parts(key)[part], "/")
		if a, err := netip.ParseAddr(address); err == nil && privateNetwork(a) >= 0 {
			addresses++
			if c.Private += n; n > most {
				most, c.Proxy = n, a
			}
		}
	}
	if 2*c.Private <= requests || addresses > maxProxies {
		c.Proxy = netip.Addr{}
	}
}

// write says what is remarkable about the clients of a number of requests.
func (c *Clients) write(b *strings.Builder, requests uint64, trusted []netip.Prefix) {
	if c.Proxy.IsValid() {
		trusted = append(slices.Clone(trusted), privateNetworks[privateNetwork(c.Proxy)])
		fmt.Fprintf(b, "%s of %s requests come from private addresses such as %s, which may be a proxy.\n"+
			"If the log has X-Forwarded-For, believe it by --trusted-proxies %s\n", grouped(c.Private),
			grouped(requests), c.Proxy, listOf(trusted, ","))
	}
}
