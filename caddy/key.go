package tokenbucket

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// clientAddress returns the address that Caddy has found: see the options trusted_proxies and
// client_ip_headers of its servers. Caddy knows no address of a peer on a Unix socket.
func clientAddress(r *http.Request) netip.Addr {
	text, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	a, _ := netip.ParseAddr(text)
	return a
}

// placeholders returns the function that replaces the placeholders in a key such as
// "{http.auth.user.id}", or nil if the key has none. A placeholder without a value is empty.
func placeholders(key string) func(*http.Request) string {
	if !strings.Contains(key, "{") {
		return nil
	}
	return func(r *http.Request) string {
		repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
		if !ok {
			return ""
		}
		return repl.ReplaceAll(key, "")
	}
}

// textAddresses returns a warning for each key that is an address as text.
func textAddresses(p *httplimit.Policy) (warnings []string) {
	for _, s := range p.Sets {
		for _, r := range s.Rules {
			for _, k := range r.Keys {
				if strings.Contains(k, "remote.host}") || strings.Contains(k, "vars.client_ip}") {
					warnings = append(warnings, fmt.Sprintf("rule %q: %s is text, so each address of an IPv6"+
						" network has a bucket of its own: ip:address has one for the network", r.Name, k))
				}
			}
		}
	}
	return warnings
}
