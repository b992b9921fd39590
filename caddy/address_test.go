package tokenbucket

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// behind is a site whose rule has a bucket for each client. It trusts the peers of the tests.
func behind(options, rules string) string {
	return "{\nservers {\ntrusted_proxies static 127.0.0.1/32\n" + options + "\n}\n}\n" +
		"http://:80 {\ntoken_bucket {\n" + rules + "}\nrespond ok\n}"
}

func forwarded(address string) string { return "X-Forwarded-For: " + address }

func TestWithoutTrustedProxiesAForwardedAddressIsIgnored(t *testing.T) {
	s := start(t, "http://:80 {\ntoken_bucket {\n"+perHour("r", "1", "key {client_ip}")+
		"}\nrespond ok\n}")
	s.want(200, forwarded("198.51.100.1"))
	s.want(429, forwarded("198.51.100.2"))
	s.want(429)
}

func TestTheAddressIsTheOneThatCaddyHasFound(t *testing.T) {
	rule := perHour("r", "1", "key {client_ip}")
	s := start(t, behind("", rule))
	s.want(200, forwarded("198.51.100.1"))
	s.want(429, forwarded("198.51.100.1"))
	s.want(200, forwarded("198.51.100.2"))
	// With trusted_proxies_strict, an entry that the client has sent itself does not count.
	s = start(t, behind("trusted_proxies_strict", rule))
	s.want(200, forwarded("198.51.100.7, 198.51.100.1"))
	s.want(429, forwarded("198.51.100.8, 198.51.100.1"))
	s = start(t, behind("client_ip_headers X-Client", rule))
	s.want(200, "X-Client: 198.51.100.1", forwarded("198.51.100.1"))
	s.want(429, "X-Client: 198.51.100.1", forwarded("198.51.100.2"))
}

func TestNetworksOfIPv6(t *testing.T) {
	s := start(t, behind("", perHour("r", "1", "key {client_ip}")))
	s.want(200, forwarded("2001:db8::1"))
	s.want(429, forwarded("2001:db8::ffff:1:2:3"))
	s.want(200, forwarded("2001:db8:0:1::1"))
	s.want(200, forwarded("203.0.113.1"))
	s.want(429, forwarded("::ffff:203.0.113.1"))
	s.want(429, forwarded("2002:cb00:7101::1")) // 6to4
	s = start(t, behind("", "ipv6_prefix 48\nipv4_prefix 24\n"+perHour("r", "1", "key {client_ip}")))
	s.want(200, forwarded("2001:db8::1"))
	s.want(429, forwarded("2001:db8:0:1::1"))
	s.want(200, forwarded("203.0.113.1"))
	s.want(429, forwarded("203.0.113.2"))
	// Three /64 of a /48, which has 2 times the limit of a /64.
	s = start(t, behind("", perHour("r", "1",
		"key {client_ip}\nipv6_prefixes 64 48\nparent_factor 2")))
	s.want(200, forwarded("2001:db8::1"))
	s.want(429, forwarded("2001:db8::2"))
	s.want(200, forwarded("2001:db8:0:1::1"))
	if w := s.want(429, forwarded("2001:db8:0:2::1")); !strings.Contains(w.body, `"r/48"`) {
		t.Error(w.body)
	}
}

// A client whose address Caddy does not know has a bucket with all others of its kind.
func TestAPeerWithoutAnAddress(t *testing.T) {
	caddyfile := "http://:80 {\ntoken_bucket {\n" + perHour("r", "1", "key {client_ip}") +
		"}\nrespond ok\n}"
	s := start(t, caddyfile)
	s.want(200)
	config, err := adapt(caddyfile)
	if err != nil {
		t.Fatal(err)
	}
	socket := t.TempDir() + "/socket"
	s.listen(config, "unix/"+socket)
	if err := s.run(config); err != nil {
		t.Fatal(err)
	}
	var d net.Dialer
	s.client.Transport = &http.Transport{DialContext: func(
		ctx context.Context, _, _ string,
	) (net.Conn, error) {
		return d.DialContext(ctx, "unix", socket)
	}}
	s.want(200)
	s.want(429)
}

func TestAddressesAsTextHaveAWarning(t *testing.T) {
	for key, want := range map[string]string{
		"{remote_host}": "{http.request.remote.host} is text",
		"{remote}":      "{http.request.remote} has the port of the peer",
		"{remote_port}": "{http.request.remote.port} has the port of the peer",
	} {
		s := start(t, "http://:80 {\ntoken_bucket {\n"+perHour("r", "1", "key "+key)+
			"}\nrespond ok\n}")
		if len(s.logged(want)) != 1 {
			t.Errorf("%s: no warning that %s", key, want)
		}
	}
}

func TestAddressesAsTextInAFallbackHaveAWarning(t *testing.T) {
	rule := httplimit.Rule{Name: "rest", Keys: []string{"{http.request.remote.host}"}}
	p := &httplimit.Policy{Sets: []httplimit.RuleSet{{Fallback: &rule}}}
	if got := textAddresses(p); len(got) != 1 || !strings.Contains(got[0], `rule "rest"`) {
		t.Errorf("warnings %q", got)
	}
}
