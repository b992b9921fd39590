package httplimit

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/textproto"
	"strings"
)

// ClientAddress finds the address of the client behind proxies. The zero value trusts
// nobody: the client is the peer of the connection.
type ClientAddress struct {
	// Trusted are the networks of the proxies whose header is believed. A peer that has
	// no address, as on a Unix socket, is in none of them: all its clients are one.
	Trusted []netip.Prefix
	// Header is the one header in which trusted proxies append the address of their
	// peer to a list, separated by commas. The default is X-Forwarded-For. Forwarded
	// (RFC 7239), which has another syntax, is not understood.
	Header string
	// IPv4Bits and IPv6Bits say how much of an address has one bucket. The defaults
	// are 32 and 64, for whoever has one IPv6 address usually has all of its /64.
	IPv4Bits, IPv6Bits int
}

// normalize puts the defaults in, and networks of IPv4 in their 4-byte form.
func (c ClientAddress) normalize() (ClientAddress, error) {
	if c.Header == "" {
		c.Header = "X-Forwarded-For"
	}
	if c.Header = http.CanonicalHeaderKey(c.Header); c.Header == "Forwarded" {
		return c, errors.New("client address: the syntax of Forwarded is not understood")
	}
	if c.IPv4Bits == 0 {
		c.IPv4Bits = 32
	}
	if c.IPv6Bits == 0 {
		c.IPv6Bits = 64
	}
	if c.IPv4Bits < 0 || c.IPv4Bits > 32 || c.IPv6Bits < 0 || c.IPv6Bits > 128 {
		return c, fmt.Errorf("client address: want 1 to 32 and 1 to 128 bits, got %d and %d",
			c.IPv4Bits, c.IPv6Bits)
	}
	trusted := make([]netip.Prefix, len(c.Trusted))
	for i, p := range c.Trusted {
		if !p.IsValid() {
			return c, fmt.Errorf("client address: trusted network %d is invalid", i)
		}
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		trusted[i] = p
	}
	c.Trusted = trusted
	return c, nil
}

// trusts says whether the header of a proxy at this address is believed.
func (c *ClientAddress) trusts(a netip.Addr) bool {
	for _, p := range c.Trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// ClientAddress returns the address of the client, as WithClientAddress says it is found. It
// is the zero Addr if the peer has no address, as on a Unix socket.
func (l *Limiter) ClientAddress(r *http.Request) netip.Addr { return l.address.of(r) }

// TrustsPeer says whether the peer of the connection is a trusted proxy, so that what it
// says of the client may be passed on.
func (l *Limiter) TrustsPeer(r *http.Request) bool {
	peer, _ := parseAddress(r.RemoteAddr)
	return l.address.trusts(peer)
}

// of returns the address of the client: of the peer or, as long as that is a trusted
// proxy, the next entry of the header from the right. What lies further left was written
// by somebody whom nobody vouches for. An entry that is no address ends the walk, so the
// client can choose neither a key of its own nor to have none.
func (c *ClientAddress) of(r *http.Request) netip.Addr {
	current, _ := parseAddress(r.RemoteAddr)
	if !c.trusts(current) {
		return current
	}
	lines := r.Header[c.Header]
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			var entry string
			rest, entry, more = cutLast(rest)
			next, ok := parseAddress(entry)
			if !ok {
				return current
			}
			if current = next; !c.trusts(current) {
				return current
			}
		}
	}
	return current
}

// cutLast returns what is before and after the last comma, and whether there is one.
func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, ',')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

// longestAddress is more than an address, with brackets, port, zone and spaces, takes.
const longestAddress = 128

// parseAddress reads an address with or without port, brackets and zone. An IPv4 address
// in IPv6 form becomes the IPv4 address that it is, before any prefix is looked at.
func parseAddress(s string) (netip.Addr, bool) {
	if len(s) > longestAddress {
		return netip.Addr{}, false
	}
	s = textproto.TrimString(s)
	if rest, ok := strings.CutPrefix(s, "["); ok {
		host, port, ok := strings.Cut(rest, "]")
		if !ok || port != "" && !isPort(port) {
			return netip.Addr{}, false
		}
		s = host
	} else if i := strings.IndexByte(s, ':'); i >= 0 && i == strings.LastIndexByte(s, ':') {
		if !isPort(s[i:]) {
			return netip.Addr{}, false
		}
		s = s[:i]
	}
	a, err := netip.ParseAddr(s)
	return a.Unmap().WithZone(""), err == nil
}

// isPort says whether s is a colon and a number of up to five digits.
func isPort(s string) bool {
	if len(s) < 2 || len(s) > 6 || s[0] != ':' {
		return false
	}
	for _, c := range []byte(s[1:]) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// network returns the part of a that has one bucket, as an address with the rest zero.
func (c *ClientAddress) network(a netip.Addr) netip.Addr {
	p, _ := a.Prefix(c.bits(a))
	return p.Addr()
}

func (c *ClientAddress) bits(a netip.Addr) int {
	if a.Is4() {
		return c.IPv4Bits
	}
	return c.IPv6Bits
}

// readable writes a network as an address, or with its prefix if that is shorter.
func (c *ClientAddress) readable(network netip.Addr) string {
	if !network.IsValid() {
		return "unknown"
	}
	if bits := c.bits(network); bits < network.BitLen() {
		return netip.PrefixFrom(network, bits).String()
	}
	return network.String()
}
