package accesslog

import (
	"bytes"
	"net/netip"
)

// setOrigin sets who sent a request from what stands before the time:
//
//	client ident user                   as the format has it
//	host client ident user              with the virtual host, or host:port, first
//	client, proxy, proxy ident user     X-Forwarded-For in the place of the client, or both
//
// A user may contain spaces, and is whatever a client claims to be. The ident, between the
// two, is "-" nearly everywhere, and never an address: where it is one, something precedes
// the client. What is in none of these forms is refused, for to take a host or a proxy for
// the client would put strangers into one bucket.
func (rec *Record) setOrigin(b []byte) bool {
	client, rest, forwarded := firstOfList(b)
	ident, user, ok := bytes.Cut(rest, space)
	if string(ident) != "-" && preceded(ident, user) {
		if forwarded || isAddr(client) {
			return false
		}
		rec.Host = dash(withoutPort(client))
		client, rest, _ = firstOfList(rest)
		ident, user, ok = bytes.Cut(rest, space)
		ok = ok && !isAddr(ident)
	}
	rec.IP, rec.User = dash(client), dash(user)
	return ok && len(client) > 0 && len(user) > 0
}

// firstOfList splits the first field off, of a list with commas the first element.
func firstOfList(b []byte) (first, rest []byte, list bool) {
	first, rest, _ = bytes.Cut(b, space)
	element, _, list := bytes.Cut(first, comma)
	for last := first; len(last) > 0 && last[len(last)-1] == ','; {
		last, rest, _ = bytes.Cut(rest, space)
	}
	return element, rest, list
}

var comma = []byte{','}

// preceded says whether what looks like the ident is the client, since a field stands
// before it: because it is an address or a list, or because the "-" of an ident follows.
func preceded(second, rest []byte) bool {
	return isAddr(second) || bytes.Contains(second, comma) || bytes.HasPrefix(rest, noIdent)
}

var noIdent = []byte("- ")

// isAddr says whether b is an IP address, with or without a port. To parse it takes an
// allocation, so what has other bytes than addresses is not.
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

// withoutPort drops the port behind a host.
func withoutPort(b []byte) []byte {
	colon := bytes.LastIndexByte(b, ':')
	if colon < 0 || digits(b[colon+1:]) < len(b)-colon-1 {
		return b
	}
	return b[:colon]
}
