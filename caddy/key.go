package tokenbucket

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
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
// lacks the key, also if the key has other text. It is an error if one can never have a value.
func placeholders(key string) (func(*http.Request) string, error) {
	found := false
	_, err := caddy.NewEmptyReplacer().ReplaceFunc(key, func(name string, _ any) (any, error) {
		found = true
		return nil, checkPlaceholder(name)
	})
	if err != nil || !found {
		return nil, err
	}
	return func(r *http.Request) string {
		value, _ := replacer(r).ReplaceFunc(key, present) // no value is an error and ""
		return value
	}, nil
}

var errMissing = errors.New("missing")

// present is a caddy.ReplacementFunc that demands a value. It cuts the blanks off that HTTP/2 has
// around fields, and that an upstream does not see.
func present(_ string, value any) (any, error) {
	text := strings.TrimSpace(caddy.ToString(value))
	if text == "" {
		return nil, errMissing
	}
	return text, nil
}

var (
	// ofCaddy matches the placeholders in the namespaces of Caddy's modules and of this one.
	ofCaddy = regexp.MustCompile(`\{(env|file|system|time|http\.(auth|error|intercept|matchers|` +
		`regexp|request|response|reverse_proxy|token_bucket|vars))\.[^{}]*\}`)
	// closed matches the names that only Caddy itself has, and names without a dot.
	closed = regexp.MustCompile(`^((http\.error|http\.request|system|time)(\..*)?|[^.]*)$`)
	// inOtherRoutes matches the placeholders that handlers of requests lack.
	inOtherRoutes = regexp.MustCompile(`\{http\.(error|intercept|reverse_proxy|token_bucket)\.`)
	// dropped matches the header fields with _ or . in their names, in both forms of a key.
	dropped = regexp.MustCompile(`^header:.*_|\{http\.request\.header\.[^{}]*[_.]`)
)

// checkPlaceholder returns an error if nothing sets a placeholder of this name. The module
// request_body_var sets the parts of a body.
func checkPlaceholder(name string) error {
	const remoteHost = "http.request.remote.host" // of the peer; a prefix length may follow it
	short := caddyfile.Segment{{Text: "{" + name + "}"}}
	httpcaddyfile.NewShorthandReplacer().ApplyToSegment(&short)
	if full := short[0].Text; full != "{"+name+"}" && !strings.HasPrefix(name, "file.") {
		return fmt.Errorf("{%s} is a name for Caddyfiles: want %s", name, full)
	}
	if !closed.MatchString(name) || strings.HasPrefix(name, "http.request.body.") {
		return nil
	}
	// A request in an error route has all placeholders of Caddy itself.
	repl := caddy.NewReplacer()
	ctx := context.WithValue(context.Background(), http.LocalAddrContextKey, new(net.TCPAddr))
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody) // never fails
	r = caddyhttp.PrepareRequest(r, repl, nil, nil)
	new(caddyhttp.HTTPErrorConfig).WithError(r, caddyhttp.HandlerError{})
	switch _, known := repl.Get(name); {
	case known && strings.HasPrefix(name, remoteHost+"/"):
		for _, r.RemoteAddr = range []string{"192.0.2.1:1", "[2001:db8::1]:1"} {
			if value, _ := repl.Get(name); value == "" {
				return fmt.Errorf("{%s} has no value for %s: want prefix lengths of IPv4 and IPv6, such as"+
					" {%s/32,64}", name, r.RemoteAddr, remoteHost)
			}
		}
		return nil
	case known:
		return nil
	case strings.Contains(name, "."):
		return fmt.Errorf("{%s} is not a placeholder of Caddy", name)
	}
	return fmt.Errorf("{%s} is not a placeholder of Caddy: if a module or the directive map sets it,"+
		" copy it with the directive vars", name)
}

// doubts returns a warning for each key that may not be what it seems.
func doubts(p *policy.Policy) (warnings []string) {
	for i := range p.Sets {
		for r := range p.Sets[i].All() {
			others := append(slices.Sorted(maps.Keys(r.Match)), r.Priority.By, r.Tiers.By, r.Cost.Source)
			for i, k := range slices.Concat(r.Keys, others) {
				var why string
				switch inKey := i < len(r.Keys); {
				case inOtherRoutes.MatchString(k):
					why = "has a value only in routes for errors or for responses, such as handle_errors and" +
						" handle_response: in any other, each request lacks it"
				case inKey && (strings.Contains(k, "remote.host}") || strings.Contains(k, "vars.client_ip}")):
					why = "is text, so each address of an IPv6 network has a bucket of its own: ip:address" +
						" has one for the network"
				case inKey && (strings.Contains(k, "request.remote}") || strings.Contains(k, "remote.port}")):
					why = "has the port of the peer, so each connection has a bucket of its own: ip:address" +
						" has one for the client"
				case dropped.MatchString(k):
					why = "has a field that Caddy drops, as each with _ or . in its name, unless" +
						" expected_underscore_headers or expected_dot_headers of the server has it"
				case strings.Contains(ofCaddy.ReplaceAllString(k, ""), "{"):
					why = "has a placeholder that has no value unless a module or the directive map sets it"
				default:
					continue
				}
				warnings = append(warnings, fmt.Sprintf("rule %q: %s %s", r.Name, k, why))
			}
		}
	}
	return warnings
}
