package replay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/tb"
)

func networks(t testing.TB, texts ...string) (all []cli.Network) {
	t.Helper()
	for _, text := range texts {
		var n cli.Network
		if err := n.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// clientOf returns the ip part of the key of a line.
func clientOf(t testing.TB, o *Options, line string) string {
	t.Helper()
	k, err := newKeyer(o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := accesslog.NewReader(t.Context(), "a.log", strings.NewReader(line),
		accesslog.Schema{})
	var rec accesslog.Record
	if err = errors.Join(err, r.Next(&rec)); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return compositekey.Parts(string(k.key(&rec)))[0]
}

// combined returns a line of nginx's "main" format.
func combined(peer, forwarded string) string {
	return fmt.Sprintf(`%s - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "x" "%s"`,
		peer, forwarded)
}

func TestClientBehindProxies(t *testing.T) {
	const proxies = "10.0.0.0/8"
	list := func(peer string) string {
		return peer + ` - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`
	}
	for _, tt := range []struct{ name, trusted, line, want string }{
		{"quote in the agent", proxies, strings.Replace(combined("10.0.0.1", "192.0.2.7"), `"x"`,
			`"\" \"1.1.1.1"`, 1), "192.0.2.7"},
		{"host name", proxies, combined("client.example", "192.0.2.7"), "client.example"},

		{"list instead of the peer", "", list("1.1.1.1, 192.0.2.7"), "192.0.2.7"},
		{"list with proxies", proxies, list("1.1.1.1, 192.0.2.7, 10.0.0.3, 10.0.0.2"), "192.0.2.7"},
		{"list and header", proxies, combined("10.0.0.2, 10.0.0.1", "1.1.1.1, 192.0.2.7"),
			"192.0.2.7"},

		{"JSON without a peer", "",
			`{"ts":1431857103,"uri":"/","http_x_forwarded_for":"1.1.1.1, 192.0.2.7"}`, "192.0.2.7"},
		{"header of several lines", proxies,
			`{"ts":1431857103,"status":200,"request":{"remote_ip":"10.0.0.1",` +
				`"headers":{"X-Forwarded-For":["1.1.1.1","192.0.2.7","10.0.0.3, 10.0.0.2"]}}}`,
			"192.0.2.7"},
	} {
		o := &Options{Keys: []string{"ip"}, Trusted: networks(t, strings.Fields(tt.trusted)...)}
		if got := clientOf(t, o, tt.line); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The same requests have the same keys in httplimit, as tb-proxy uses it, and in a replay of
// their log.
func TestClientsAreThoseOfHTTPLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	addresses := []string{"192.0.2.7", "192.0.2.8:80", "10.0.0.1", "10.1.2.3", "::ffff:10.0.0.4",
		"2001:db8:1:2::3", "[2001:db8:1:2::4]:443", "2001:db8:ffff::1", "fe80::1%eth0"}
	entries := append([]string{"unknown", "", " ", "_hidden", "1.2.3.4.5", "10.0.0.1:x", "[::1"},
		addresses...)
	entries = append(entries, addresses...)
	policy := httplimit.Rules(httplimit.Rule{Name: "r", Keys: []string{"ip:address"},
		Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: time.Second}})
	differ := make(map[string]bool)
	for range 500 {
		var trusted []cli.Network
		for _, text := range []string{"10.0.0.0/8", "2001:db8:ffff::/48", "192.0.2.8/32"} {
			if rng.IntN(2) == 0 {
				trusted = append(trusted, networks(t, text)...)
			}
		}
		bits := []int{48, 64, 128}[rng.IntN(3)]
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = addresses[rng.IntN(len(addresses))]
		var list []string
		for range rng.IntN(5) {
			list = append(list, entries[rng.IntN(len(entries))])
		}
		header := strings.Join(list, []string{",", ", "}[rng.IntN(2)])
		if header != "" {
			r.Header.Set("X-Forwarded-For", header)
		}
		limiter, err := httplimit.New(policy, httplimit.WithClientAddress(
			httplimit.ClientAddress{Trusted: cli.Prefixes(trusted), IPv6Bits: bits}))
		if err != nil {
			t.Fatal(err)
		}
		want := limiter.Explain(r)[0].Key[0].Value
		o := &Options{Keys: []string{"ip"}, Trusted: trusted, IPv6Prefix: bits}
		if got := clientOf(t, o, combined(r.RemoteAddr, header)); got != want {
			t.Errorf("peer %s, X-Forwarded-For %q, trusted %v: got %q, want %q as in httplimit",
				r.RemoteAddr, header, trusted, got, want)
		}
		differ[want] = true
	}
	if len(differ) < 10 {
		t.Errorf("only the keys %v were compared", differ)
	}
}
