package cli

import (
	"fmt"
	"net/netip"
	"strings"
)

// Network is a flag with the addresses that have a common prefix, or with a single address.
type Network struct{ netip.Prefix }

// UnmarshalText parses a prefix or an address.
func (n *Network) UnmarshalText(text []byte) (err error) {
	s := strings.TrimSpace(string(text)) // a list may have spaces
	if a, err := netip.ParseAddr(s); err == nil {
		n.Prefix = netip.PrefixFrom(a, a.BitLen())
		return nil
	}
	if n.Prefix, err = netip.ParsePrefix(s); err != nil {
		return fmt.Errorf("%q: want networks such as 10.0.0.0/8 or 2001:db8::/32", text)
	}
	return nil
}

// Prefixes returns the prefixes of networks.
func Prefixes(networks []Network) (all []netip.Prefix) {
	for _, n := range networks {
		all = append(all, n.Prefix)
	}
	return all
}
