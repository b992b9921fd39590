package proxy

import (
	"net"
	"net/netip"
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
)

// Connections are counted by the clients that the limiter has: an IPv6 address with an IPv4 address
// in it is the IPv4 address. Otherwise all clients behind a NAT64 would share one count, and the
// holder of a 6to4 network would have 65,536 counts.
func TestConnectionsHaveTheClientsOfTheLimiter(t *testing.T) {
	rules, err := clientaddr.New([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, 24, 64)
	if err != nil {
		t.Fatal(err)
	}
	l := newConnections(nil, 1, rules, nil)
	for peer, want := range map[string]string{
		"203.0.113.9": "203.0.113.0", "::ffff:203.0.113.9": "203.0.113.0",
		"64:ff9b::203.0.113.9": "203.0.113.0", "2002:cb00:7109:5::1": "203.0.113.0",
		"2001:db8:0:1::9": "2001:db8:0:1::", "10.0.0.1": "",
	} {
		network, counted := l.networkOf(&net.TCPAddr{IP: net.ParseIP(peer), Port: 1})
		if counted != (want != "") || counted && network.String() != want {
			t.Errorf("%s: %v, counted %v, want %q", peer, network, counted, want)
		}
	}
}
