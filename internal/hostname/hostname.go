// Package hostname checks requested hosts, and makes one spelling of all spellings of a host.
package hostname

import (
	"net/netip"
	"strings"
)

// Bare returns a host in lower case, without its port and a dot at its end. An IPv6 address is in
// its shortest form.
func Bare(host string) string {
	// Some servers take what is before the first colon for the name, so "h:80:90" is h.
	name := host[strings.LastIndexByte(host, ']')+1:]
	if i := strings.IndexByte(name, ':'); i >= 0 {
		host = host[:len(host)-len(name)+i]
	}
	if strings.HasPrefix(host, "[") {
		if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
			return "[" + a.String() + "]"
		}
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// IsValid reports whether a client of HTTP sends a host on as it is. It may have a port. A client
// encodes other letters than ASCII, drops the zone of an address, and sends no host in place of one
// with other characters.
func IsValid(host string) bool {
	for i := range len(host) {
		c := host[i]
		isLetter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !isLetter && (c < '0' || c > '9') && strings.IndexByte("!$&'()*+,-.:;=[]_~", c) < 0 {
			return false
		}
	}
	return host != ""
}
