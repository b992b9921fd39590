package httplimit

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
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

// addressFinder is a ClientAddress made ready.
type addressFinder struct {
	clientaddr.Rules
	header string
}

func (c ClientAddress) finder() (f addressFinder, err error) {
	f.header = http.CanonicalHeaderKey(c.Header)
	switch f.header {
	case "":
		f.header = "X-Forwarded-For"
	case "Forwarded":
		return f, errors.New("client address: the syntax of Forwarded is not understood")
	}
	if f.Rules, err = clientaddr.New(c.Trusted, c.IPv4Bits, c.IPv6Bits); err != nil {
		return f, fmt.Errorf("client address: %w", err)
	}
	return f, nil
}

func (f *addressFinder) client(r *http.Request) netip.Addr {
	return f.Client(r.RemoteAddr, r.Header[f.header])
}

// ClientAddress returns the address of the client, as WithClientAddress says it is found. It
// is the zero Addr if the peer has no address, as on a Unix socket.
func (l *Limiter) ClientAddress(r *http.Request) netip.Addr { return l.address.client(r) }

// TrustsPeer reports whether the peer of the connection is a trusted proxy, so that what it
// says of the client may be passed on.
func (l *Limiter) TrustsPeer(r *http.Request) bool {
	peer, _ := clientaddr.Parse(r.RemoteAddr)
	return l.address.Trusts(peer)
}
