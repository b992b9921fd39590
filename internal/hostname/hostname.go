// Package hostname makes one spelling of all spellings of a requested host.
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
