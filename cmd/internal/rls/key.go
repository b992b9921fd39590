package rls

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// keyOf returns the descriptor of a refusal as a key for the live page.
func keyOf(f Refusal) (key []httplimit.KeyPart) {
	for _, e := range f.Descriptor {
		key = append(key, httplimit.KeyPart{Name: e.GetKey(), Value: e.GetValue()})
	}
	return key
}

// formatKey formats a key for the live page. Unless ShowKeys is set, each value but an address is
// hashed, because it may be an API key.
func (c *Command) formatKey(key []httplimit.KeyPart) string {
	var parts []string
	for _, part := range key {
		format := httplimit.FormatMaskedKey
		if _, err := netip.ParseAddr(part.Value); c.ShowKeys || err == nil {
			format = httplimit.FormatKey
		}
		parts = append(parts, format([]httplimit.KeyPart{part}))
	}
	return cmp.Or(strings.Join(parts, " "), httplimit.FormatKey(nil))
}
