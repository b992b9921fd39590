package rls

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"

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
	shown := slices.Clone(key)
	for i, part := range shown {
		if _, err := netip.ParseAddr(part.Value); err != nil && !c.ShowKeys && part.Value != "" {
			shown[i].Value = hash(part.Value)
		}
	}
	return httplimit.FormatKey(shown)
}

// hash returns a short hash of a secret, as httplimit.FormatMaskedKey shows it.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:6])
}
