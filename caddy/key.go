package tokenbucket

import (
	"errors"
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
// "{http.auth.user.id}", or nil if the key has none. If a placeholder has no value, the request
// lacks the key, also if the key has other text.
func placeholders(key string) func(*http.Request) string {
	if _, rest, _ := strings.Cut(key, "{"); !strings.Contains(rest, "}") {
		return nil
	}
	return func(r *http.Request) string {
		repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
		if !ok {
			return ""
		}
		value, err := repl.ReplaceFunc(key, present)
		if err != nil {
			return ""
		}
		return value
	}
}

var errMissing = errors.New("missing")

// present is a caddy.ReplacementFunc that demands a value.
func present(_ string, value any) (any, error) {
	if caddy.ToString(value) == "" {
		return nil, errMissing
	}
	return value, nil
}

// textAddresses returns a warning for each key that is an address as text.
func textAddresses(p *httplimit.Policy) (warnings []string) {
	for i := range p.Sets {
		for r := range p.Sets[i].All() {
			for _, k := range r.Keys {
				switch {
				case strings.Contains(k, "remote.host}") || strings.Contains(k, "vars.client_ip}"):
					warnings = append(warnings, fmt.Sprintf("rule %q: %s is text, so each address of an IPv6"+
						" network has a bucket of its own: ip:address has one for the network", r.Name, k))
				case strings.Contains(k, "request.remote}") || strings.Contains(k, "remote.port}"):
					warnings = append(warnings, fmt.Sprintf("rule %q: %s has the port of the peer, so each"+
						" connection has a bucket of its own: ip:address has one for the client", r.Name, k))
				}
			}
		}
	}
	return warnings
}
