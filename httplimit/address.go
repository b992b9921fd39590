package httplimit

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
)

// ClientAddress says how the address of a client behind proxies is found. The zero value trusts
// no proxy: the client is the peer of the connection.
//
// The address is the peer's or, as long as the address found so far is in Trusted, the next entry
// of Header from the right. An entry that is not the address of a host ends the search, so a client
// can neither choose its address nor avoid having one. An IPv6 address that has an IPv4 address in
// it (mapped, NAT64 or 6to4) counts as the IPv4 address.
type ClientAddress struct {
	// Trusted are the networks of the proxies whose Header is believed. A peer without an
	// address, as on a Unix socket, is in no network: all its clients count as one. A program that
	// connects to a Unix socket can bind its own socket to a path such as 10.0.0.1:1, which reads as
	// an address. Use Find if such programs are not trusted.
	Trusted []netip.Prefix
	// Header is the one header in which trusted proxies append the address of their peer to
	// a list with commas. The default is X-Forwarded-For. In Forwarded (RFC 7239) the entries are
	// the values of for=, and an element without an address, such as for=_hidden, ends the search.
	Header string
	// Find returns the address of the client, or the zero Addr if it is not known. It is for servers
	// that find the address themselves, replaces Trusted and Header, and must be safe for concurrent
	// use.
	Find func(*http.Request) netip.Addr
	// IPv4Bits and IPv6Bits are how many leading bits addresses of one bucket have in common.
	// The defaults are 32 and 64, because a client usually has a whole /64 of IPv6.
	IPv4Bits, IPv6Bits int
}

// addressFinder is a ClientAddress prepared for requests.
type addressFinder struct {
	clientaddr.Rules
	header string
	find   func(*http.Request) netip.Addr // may be nil
}

func (c ClientAddress) finder() (f addressFinder, err error) {
	f.find = c.Find
	f.header = http.CanonicalHeaderKey(cmp.Or(c.Header, "X-Forwarded-For"))
	if f.find != nil && (len(c.Trusted) > 0 || c.Header != "") {
		return f, errors.New("client address: Find replaces Trusted and Header")
	}
	if !fieldName.MatchString(f.header) {
		return f, fmt.Errorf("client address: Header is %q, want A-Z a-z 0-9 _ -", c.Header)
	}
	if f.Rules, err = clientaddr.New(c.Trusted, c.IPv4Bits, c.IPv6Bits); err != nil {
		return f, fmt.Errorf("client address: %w", err)
	}
	return f, nil
}

// ClientAddress returns the address of the client, found as WithClientAddress says. It is the
// zero Addr if the peer has no address, as on a Unix socket.
func (l *Limiter) ClientAddress(r *http.Request) netip.Addr {
	f := &l.address
	if f.find != nil {
		return f.Behind(f.find(r).Unmap().WithZone(""), nil, false)
	}
	peer, _ := clientaddr.Parse(r.RemoteAddr)
	var lines []string
	if f.Trusts(peer) { // otherwise without a look at the header
		lines = l.header(r, f.header)
	}
	return f.Behind(peer, lines, f.header == "Forwarded")
}

// TrustsPeer reports whether the peer of the connection is a trusted proxy. If it is not, its
// X-Forwarded fields must not be passed on to an upstream.
func (l *Limiter) TrustsPeer(r *http.Request) bool {
	peer, _ := clientaddr.Parse(r.RemoteAddr)
	return l.address.Trusts(peer)
}
