// Package clientaddr finds the address of a client behind proxies, and the network whose
// addresses share a bucket. The rules are the same for requests and for records of a log.
package clientaddr

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
)

// Rules say which proxies are trusted, and which addresses share a bucket. New makes them.
type Rules struct {
	trusted            []netip.Prefix
	ipv4Bits, ipv6Bits int
}

// New returns rules that trust the proxies in these networks. The first ipv4Bits or ipv6Bits
// of an address are its network, whose addresses share a bucket; 0 means 32 and 64.
func New(trusted []netip.Prefix, ipv4Bits, ipv6Bits int) (Rules, error) {
	r := Rules{make([]netip.Prefix, len(trusted)), cmp.Or(ipv4Bits, 32), cmp.Or(ipv6Bits, 64)}
	if r.ipv4Bits < 0 || r.ipv4Bits > 32 || r.ipv6Bits < 0 || r.ipv6Bits > 128 {
		return Rules{}, fmt.Errorf("IPv4 and IPv6 bits are %d and %d, want 1 to 32 and 1 to 128",
			r.ipv4Bits, r.ipv6Bits)
	}
	for i, p := range trusted {
		if !p.IsValid() {
			return Rules{}, fmt.Errorf("trusted network %d is invalid", i)
		}
		r.trusted[i] = unmapped(p)
	}
	return r, nil
}

// WithIPv6Bits returns the same rules with another number of bits for IPv6: 1 to 128.
func (r *Rules) WithIPv6Bits(bits int) Rules { return Rules{r.trusted, r.ipv4Bits, bits} }

// Bits returns how many leading bits of an address its network has.
func (r *Rules) Bits() (ipv4, ipv6 int) { return r.ipv4Bits, r.ipv6Bits }

// Trusts reports whether a proxy at this address is trusted.
func (r *Rules) Trusts(a netip.Addr) bool {
	return slices.ContainsFunc(r.trusted, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Client returns the address of the client, as httplimit.ClientAddress states it: the address of
// the peer or, behind trusted proxies, an entry in the lines of their header, of which empty ones
// are skipped (RFC 9110, 5.6.1). The result is the zero Addr if the peer has no address. Client
// keeps none of the strings.
func (r *Rules) Client(peer string, lines []string) netip.Addr {
	a, _ := Parse(peer)
	return r.Behind(a, lines, false)
}

// Behind is Client for a peer whose address is already parsed. The lines are of Forwarded (RFC
// 7239) if forwarded is true. An element of it that does not have one address, such as for=_hidden,
// is not the address of a host.
func (r *Rules) Behind(peer netip.Addr, lines []string, forwarded bool) netip.Addr {
	client := r.walk(peer, lines, forwarded)
	if client.IsUnspecified() {
		return netip.Addr{}
	}
	return Embedded(client)
}

func (r *Rules) walk(client netip.Addr, lines []string, forwarded bool) netip.Addr {
	for _, rest := range slices.Backward(lines) {
		for more := true; more && r.Trusts(client); {
			var entry string
			rest, entry, more = cutLast(rest, ',', forwarded)
			if textproto.TrimString(entry) == "" {
				continue
			}
			if forwarded {
				entry = forwardedFor(entry)
			}
			next, ok := Parse(entry)
			if !ok || next.IsUnspecified() { // 0.0.0.0 and :: are not hosts
				return client
			}
			client = next
		}
	}
	return client
}

// Embedded returns the IPv4 address in an address of NAT64 (64:ff9b::/96, RFC 6052) or 6to4
// (2002::/16, RFC 3056), and every other address unchanged. Otherwise all clients behind a NAT64
// would be one /64, and the holder of one IPv4 address would have 65,536 of them.
func Embedded(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	b := a.As16()
	ipv4 := netip.Addr{}
	switch {
	case [12]byte(b[:12]) == [12]byte{0, 0x64, 0xff, 0x9b}:
		ipv4 = netip.AddrFrom4([4]byte(b[12:]))
	case b[0] == 0x20 && b[1] == 0x02:
		ipv4 = netip.AddrFrom4([4]byte(b[2:6]))
	}
	if !ipv4.IsValid() || ipv4.IsUnspecified() {
		return a
	}
	return ipv4
}

var nat64, sixToFour = netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("2002::/16")

// ParseNetwork reads an address or a network of clients, and reports whether a client can be in it.
// None is in a network of NAT64 or 6to4, because the client is the embedded IPv4 address.
func ParseNetwork(s string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(textproto.TrimString(s))
	if err != nil {
		a, ok := Parse(s) // which takes what is behind a % for a zone
		a = Embedded(a)
		return netip.PrefixFrom(a, a.BitLen()), ok && !a.IsUnspecified() && !strings.Contains(s, "/")
	}
	isEmbedding := p.Bits() >= nat64.Bits() && nat64.Contains(p.Addr()) ||
		p.Bits() >= sixToFour.Bits() && sixToFour.Contains(p.Addr())
	isNone := p.IsSingleIP() && p.Addr().Unmap().IsUnspecified() ||
		p.Bits() < 96 && p.Addr().Is4In6() // half of it is no address of a client
	return unmapped(p), !isEmbedding && !isNone
}

func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

// maxLength is more than an address with brackets, port, zone and spaces takes.
const maxLength = 128

// Parse reads an address with or without port, brackets and zone, and reports whether s is
// one. It drops the zone, and returns an IPv4 address in IPv6 form as the IPv4 address.
func Parse(s string) (netip.Addr, bool) {
	if len(s) > maxLength {
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

// isPort reports whether s is a colon and a number of up to five digits.
func isPort(s string) bool {
	digits := len(s) > 1 && len(s) <= 6 && s[0] == ':'
	for i := 1; i < len(s) && digits; i++ { // strings.Trim would take ten times as long
		digits = '0' <= s[i] && s[i] <= '9'
	}
	return digits
}

// Network returns the network of a, whose addresses share a bucket. Its other bits are 0.
func (r *Rules) Network(a netip.Addr) netip.Addr {
	p, _ := a.Prefix(r.bits(a))
	return p.Addr()
}

func (r *Rules) bits(a netip.Addr) int {
	if a.Is4() {
		return r.ipv4Bits
	}
	return r.ipv6Bits
}

// AppendNetwork appends a network as text: an address, or a prefix if it has more addresses.
// The zero Addr is "unknown".
func (r *Rules) AppendNetwork(b []byte, network netip.Addr) []byte {
	if !network.IsValid() {
		return append(b, "unknown"...)
	}
	if bits := r.bits(network); bits < network.BitLen() {
		return netip.PrefixFrom(network, bits).AppendTo(b)
	}
	return network.AppendTo(b)
}

// forwardedFor returns the address in an element of Forwarded, or "" if it does not have just one.
func forwardedFor(element string) (client string) {
	found := false
	for more := true; more; {
		var pair string
		element, pair, more = cutLast(element, ';', true)
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(textproto.TrimString(name), "for") {
			continue
		}
		if found {
			return ""
		}
		client, found = textproto.TrimString(value), true
		if n := len(client) - 1; n > 0 && client[0] == '"' && client[n] == '"' {
			client = client[1:n]
		}
		client, _, _ = strings.Cut(client, ":_") // a hidden port
	}
	return client
}

// cutLast cuts s at the last separator, or with quotes at the last one outside of a quoted string.
// It reads from the end, because a client has written the start, and need not end its strings.
func cutLast(s string, separator byte, quotes bool) (before, after string, found bool) {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case quotes && s[i] == '"' && (len(s[:i])-len(strings.TrimRight(s[:i], `\`)))%2 == 0:
			quoted = !quoted
		case s[i] == separator && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return "", s, false
}
