package accesslog

import (
	"bytes"
	"net/netip"
)

// setOrigin sets the peer, the user and perhaps the host from the fields before the time:
//
//	peer ident user                     Common Log Format
//	host peer ident user                with the virtual host, or host:port, before it
//	client, proxy, proxy ident user     X-Forwarded-For instead of the peer, with or without
//	                                    the host before it
//
// A user is any text that a client sends, with spaces. The ident is nearly always "-" and
// never an address: if the second field is an address, the first one is the host. Any other
// form is refused. To take a host or a proxy for the peer would put many clients into one
// bucket.
func (rec *Record) setOrigin(b []byte) bool {
	peer, rest := cutList(b)
	ident, user, ok := bytes.Cut(rest, space)
	if string(ident) != "-" && isPeer(ident, user) {
		if isList(peer) || isAddr(peer) {
			return false
		}
		rec.Host = emptyIfDash(withoutPort(peer))
		peer, rest = cutList(rest)
		ident, user, ok = bytes.Cut(rest, space)
		ok = ok && !isAddr(ident)
	}
	rec.Peer, rec.User = emptyIfDash(peer), emptyIfDash(user)
	return ok && len(peer) > 0 && peer[0] != ',' && len(user) > 0
}

// cutList cuts off the first field. A field that ends with a comma continues in the next
// one.
func cutList(b []byte) (list, rest []byte) {
	for end := 0; ; end++ {
		n := bytes.IndexByte(b[end:], ' ')
		if n < 0 {
			return b, nil
		}
		if end += n; end == 0 || b[end-1] != ',' {
			return b[:end], b[end+1:]
		}
	}
}

func isList(b []byte) bool { return bytes.IndexByte(b, ',') >= 0 }

// isPeer reports whether the second field is the peer and not the ident. It is the peer if
// it is an address or a list, or if a "-" follows, which is then the ident.
func isPeer(second, rest []byte) bool {
	return isAddr(second) || isList(second) || bytes.HasPrefix(rest, noIdent)
}

var noIdent = []byte("- ")

// isAddr reports whether b is an IP address, with or without a port. To parse b allocates, so
// a text with other bytes is not parsed.
func isAddr(b []byte) bool {
	for _, c := range b {
		if bytes.IndexByte(addrBytes, c) < 0 {
			return false
		}
	}
	if _, err := netip.ParseAddr(string(b)); err == nil {
		return true
	}
	_, err := netip.ParseAddrPort(string(b))
	return err == nil
}

var addrBytes = []byte("0123456789abcdefABCDEF.:[]")

// withoutPort returns a host without its port.
func withoutPort(b []byte) []byte {
	colon := bytes.LastIndexByte(b, ':')
	if colon < 0 || countDigits(b[colon+1:]) < len(b)-colon-1 {
		return b
	}
	return b[:colon]
}
