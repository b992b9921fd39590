package tokenbucket

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

func forwarded(address string) string { return "X-Forwarded-For: " + address }

func TestTheAddressIsTheOneThatCaddyHasFound(t *testing.T) {
	rule := perHour("r", "1", "key {client_ip}")
	s := start(t, site("", rule)) // trusts no proxy
	s.want(200, forwarded("198.51.100.1"))
	s.want(429, forwarded("198.51.100.2"))
	const trusting = "{\nservers {\ntrusted_proxies static 127.0.0.1/32\n}\n}\n"
	s = start(t, trusting+site("", rule))
	s.want(200, forwarded("198.51.100.1"))
	s.want(429, forwarded("198.51.100.1"))
	s.want(200, forwarded("198.51.100.2"))
	s = start(t, trusting+site("", "ipv6_prefix 48\nipv4_prefix 24\n"+rule))
	s.want(200, forwarded("2001:db8::1"))
	s.want(429, forwarded("2001:db8:0:1::1"))
	s.want(200, forwarded("203.0.113.1"))
	s.want(429, forwarded("203.0.113.2"))
}

// Clients without an address, such as those of a Unix socket, share a bucket. Blanks around a
// field, as HTTP/2 has them, make no other key, and neither does a WebSocket of HTTP/2 or HTTP/3,
// which is a CONNECT. Early data of HTTP/3, whose address may be forged, takes no token.
func TestRequestsWithOneBucket(t *testing.T) {
	h := newHandler(t, `{"name": "r", "algorithm_config": {"tokens_per_second": 0.001, "burst": 1},
		"limit_keys": ["ip:address", "{http.request.header.X}", "{http.request.method}"]}`)
	method := ""
	next := func(_ http.ResponseWriter, r *http.Request) error { method = r.Method; return nil }
	for i, status := range []int{425, 200, 429, 429, 200} {
		r := httptest.NewRequest([]string{"GET", "CONNECT", "CONNECT", "GET", "POST"}[i], "/", nil)
		r.RemoteAddr, r.Proto = "@", []string{1: "websocket", 4: "HTTP/2.0"}[i]
		r.Header = http.Header{"X": {"t" + strings.Repeat(" ", i)}}
		r.Header[":protocol"] = []string{2: "websocket", 4: "websocket"}[i : i+1]
		r.TLS = &tls.ConnectionState{HandshakeComplete: i > 0}
		w, err := serve(h, r, caddyhttp.HandlerFunc(next))
		if got := max(w.Code, statusOf(err)); got != status || status == 200 && method != r.Method {
			t.Errorf("status %d, want %d, after a %s", got, status, method)
		}
	}
}

// Caddy's own placeholders are a closed list. Modules and configurations add others. The names that
// begin with a dot are in http.request.
func TestPlaceholdersThatNothingSets(t *testing.T) {
	for text, known := range map[string]bool{
		".method .uri_escaped .uri.path.0 .uri.query.a.b .orig_uri.path.dir .local.port .uuid .body " +
			".remote.host/24,64 .remote.host/24 .host.labels.1 .header.X .body.user file.a " +
			".tls.client.san.dns_names.0 env.A http.error.message http.vars.x http.auth.user.id " +
			"http.regexp.re.1 time.now.year http.matchers.file.type system.hostname " +
			"http.geo.country tenant.id": true,
		".remote_ip .client_ip .remote.ip .hosts .header .headers.X .uri.path.-1 .uri.path.first " +
			".host.labels.com .tls.client.san.ip .orig_uri.host tenant file remote_host header.X vars.x " +
			"re.a.1 labels.0 err.id system.name time http.request http.error.status .remote.host/64 " +
			".remote.host/abc .remote.host/200 .remote.host/33,64": false,
	} {
		for name := range strings.FieldsSeq(text) {
			if name[0] == '.' {
				name = "http.request" + name
			}
			if _, err := placeholders("{http.request.host}{" + name + "}"); (err == nil) != known {
				t.Errorf("{%s}: %v", name, err)
			}
		}
	}
}

func TestKeysThatMayNotBeWhatTheySeem(t *testing.T) {
	for key, want := range map[string]string{
		"{http.request.remote.host}":    "{http.request.remote.host} is text",
		"{http.vars.client_ip}":         "{http.vars.client_ip} is text",
		"{http.request.remote}":         "{http.request.remote} has the port of the peer",
		"{http.request.remote.port}":    "{http.request.remote.port} has the port of the peer",
		"{http.vars.a} {remote.ip}":     "{http.vars.a} {remote.ip} has a placeholder that has no value",
		"header:x_tenant":               "header:x_tenant has a field that Caddy drops",
		"{http.error.id}":               "{http.error.id} has a value only in routes for errors",
		"{http.reverse_proxy.header.X}": "{http.reverse_proxy.header.X} has a value only in routes for",
	} {
		rule := policy.Rule{Name: "rest", Keys: []string{key}}
		p := &policy.Policy{Sets: []policy.RuleSet{{Fallback: &rule}}}
		if got := doubts(p); len(got) != 1 || !strings.Contains(got[0], `rule "rest": `+want) {
			t.Errorf("%s: warnings %q, want %s", key, got, want)
		}
	}
	const proxied = "{http.reverse_proxy.status_code}"
	rule := policy.Rule{
		Match: map[string]string{proxied: "200", "{http.request.remote.host}": "::1"},
		Tiers: policy.Tiers{By: proxied}, Priority: policy.Priority{By: "{http.request.header.A.B}"},
		Cost: policy.Cost{Source: "header:x_cost"},
	}
	if got := doubts(policy.Rules(rule)); len(got) != 4 {
		t.Errorf("%q, want four warnings", got)
	}
}

func TestPlaceholdersAreKeys(t *testing.T) {
	s := start(t, site("",
		perHour("r", "1", "key {http.request.uri.path.0}:{http.request.method} {header.X-Tenant}")))
	s.want(200, "/a", "X-Tenant: 1")
	s.want(429, "/a/x", "X-Tenant: 1")
	s.want(200, "/a", "POST", "X-Tenant: 1")
	s.want(200, "/b", "X-Tenant: 1")
	s.want(200, "/a", "X-Tenant: 2")
	s.want(200, "/a")
	s.want(200, "/a") // the rule does not apply without a tenant
	// Text with a placeholder that has no value is a missing key, too.
	s = start(t, site("", perHour("r", "1",
		"key {http.auth.user.id}/{http.request.method}\non_missing reject")))
	s.want(400)
}
