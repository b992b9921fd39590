package httplimit

import (
	"encoding/base64"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// Section 6: who the client is.

func prefixes(t testing.TB, all ...string) (list []netip.Prefix) {
	t.Helper()
	for _, p := range all {
		list = append(list, netip.MustParsePrefix(p))
	}
	return list
}

// from is a request of a peer whose X-Forwarded-For has these lines.
func from(peer string, lines ...string) *http.Request {
	r := request()
	r.RemoteAddr = peer
	for _, l := range lines {
		r.Header.Add("X-Forwarded-For", l)
	}
	return r
}

func TestS6OneConfiguredHeader(t *testing.T) {
	l := mustNew(t, jsonRules(""), WithClientAddress(ClientAddress{
		Trusted: prefixes(t, "10.0.0.0/8"), Header: "cf-connecting-ip"}))
	r := from("10.0.0.1:1", "198.51.100.1")
	if got := l.ClientAddress(r).String(); got != "10.0.0.1" {
		t.Errorf("%s is of the other header", got)
	}
	r.Header.Set("CF-Connecting-IP", "198.51.100.2")
	if got := l.ClientAddress(r).String(); got != "198.51.100.2" {
		t.Error(got)
	}
	if !l.TrustsPeer(r) || l.TrustsPeer(from("11.0.0.1:1")) || l.TrustsPeer(from("@")) {
		t.Error("which peers are trusted")
	}
}

func TestS6NobodyIsTrustedByDefault(t *testing.T) {
	l := mustNew(t, jsonRules(""))
	for _, peer := range []string{"127.0.0.1:1", "10.0.0.1:1", "[::1]:1"} {
		r := from(peer, "198.51.100.1")
		if l.TrustsPeer(r) || l.ClientAddress(r).String() == "198.51.100.1" {
			t.Errorf("%s is trusted", peer)
		}
	}
}

func TestS6AddressesCountByNetwork(t *testing.T) {
	for _, c := range []struct {
		address ClientAddress
		a, b    string
		same    bool
	}{
		{ClientAddress{}, "[2001:db8::1]:1", "[2001:db8::ffff:1:2:3]:2", true},
		{ClientAddress{}, "[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
		{ClientAddress{IPv6Bits: 56}, "[2001:db8::1]:1", "[2001:db8:0:ff::1]:1", true},
		{ClientAddress{IPv6Bits: 128}, "[2001:db8::1]:1", "[2001:db8::2]:1", false},
		{ClientAddress{}, "203.0.113.1:1", "203.0.113.1:2", true},
		{ClientAddress{}, "203.0.113.1:1", "203.0.113.2:1", false},
		{ClientAddress{IPv4Bits: 24}, "203.0.113.1:1", "203.0.113.2:1", true},
		// All of IPv4 is not one bucket.
		{ClientAddress{}, "[::ffff:203.0.113.1]:1", "[::ffff:203.0.113.2]:1", false},
		{ClientAddress{}, "[::ffff:203.0.113.1]:1", "203.0.113.1:1", true},
		{ClientAddress{}, "[fe80::1%a]:1", "[fe80::1%b]:1", true},
		// Who has no address is limited all the same.
		{ClientAddress{}, "@", "", true},
	} {
		for _, keys := range []string{`["ip:address"]`, `["ip:address", "header:k"]`} {
			s := newSite(t, jsonRules("", jsonRule("r", keys, 1, "")),
				WithClientAddress(c.address))
			code := 0
			for _, peer := range []string{c.a, c.b} {
				r := from(peer)
				r.Header.Set("K", "1")
				code = s.send(r).Code
			}
			if got := code == http.StatusTooManyRequests; got != c.same {
				t.Errorf("%s and %s have one bucket: %v", c.a, c.b, got)
			}
		}
	}
}

func TestS6HostIsOfTheRequest(t *testing.T) {
	for _, key := range []string{"header:host", "header:Host"} {
		s := newSite(t, jsonRules("", jsonRule("r", sprintf("[%q]", key), 1, "")))
		r := request("Host: fake")
		r.Host = "a.example"
		if got := FormatKey(s.Explain(r)[0].Key); got != key+"=a.example" {
			t.Error(got)
		}
	}
}

func TestS6DashAndUnderscoreAreDistinct(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["header:x_key"]`, 1, "")))
	s.unlimited("X-Key: 1")
	s.granted(1, "X_Key: 1")
}

// token returns a bearer token with this payload and no signature worth the name.
func token(payload string) string {
	e := base64.RawURLEncoding.EncodeToString
	return "Bearer " + e([]byte(`{"alg":"none"}`)) + "." + e([]byte(payload)) + ".c2ln"
}

const byOrg = `"rules": [{"name": "r", "limit_keys": ["jwt:org"], "algorithm": "token_bucket",
	"algorithm_config": {"rps": 1, "burst": 1}}]`

func TestS6TokensAreNotDecodedByDefault(t *testing.T) {
	for _, jwt := range []string{``, `"jwt": "context",`} {
		newSite(t, `{`+jwt+byOrg+`}`).unlimited("Authorization: " + token(`{"org": "a"}`))
	}
}

func TestS6ClaimsOfTheProgramComeFirst(t *testing.T) {
	s := newSite(t, `{"jwt": "unverified", `+byOrg+`}`)
	r := request("Authorization: " + token(`{"org": "forged"}`))
	r = r.WithContext(ContextWithClaims(r.Context(), map[string]any{"org": "real"}))
	if got := FormatKey(s.Explain(r)[0].Key); got != "jwt:org=real" {
		t.Error(got)
	}
	// If it has none, the token is not asked instead.
	r = r.WithContext(ContextWithClaims(r.Context(), map[string]any{}))
	if got := s.Explain(r); len(got) > 0 {
		t.Error(got)
	}
}

func TestS6UnverifiedTokens(t *testing.T) {
	s := newSite(t, `{"jwt": "unverified", `+byOrg+`}`)
	ok := token(`{"org": "a"}`)
	parts := strings.Split(ok, ".")
	long := func(n int) string { // a token of n bytes
		t := token(`{"org": "a"}`)
		return t + strings.Repeat("x", n+len("Bearer ")-len(t))
	}
	for _, c := range []struct{ authorization, want string }{
		{ok, "a"}, {"bearer" + ok[6:], "a"}, {"Bearer  " + ok[7:], "a"},
		{token(`{"org": 12345678901234567890}`), "12345678901234567890"}, {token(`{"org": true}`),
			"true"},
		{token(`{"org": 1.50}`), "1.50"},
		{long(8 << 10), "a"}, {long(8<<10 + 1), ""},
		{token(`{"org": null}`), ""}, {token(`{"org": ["a"]}`), ""}, {token(`{"org": {"a": 1}}`),
			""},
		{token(`{"org": "a"} {}`), ""}, {token(`{"org": "a"}}`), ""},
		{token(`{"org": ""}`), ""}, {token(`{}`), ""}, {token(`[]`), ""}, {token(`{"org": "a"`),
			""}, {token(``), ""},
		{"Basic " + ok[7:], ""}, {ok[7:], ""}, {"Bearer", ""}, {"Bearer ", ""}, {"", ""},
		{"Bearer ..", ""},
		{parts[0] + "." + parts[1], ""}, {ok + ".x", ""},
		{parts[0] + ".!!!." + parts[2], ""}, {parts[0] + "." + parts[1] + "=." + parts[2], ""},
	} {
		got := ""
		if e := s.Explain(request("Authorization: " + c.authorization)); len(e) > 0 {
			got = e[0].Key[0].Value
		}
		if got != c.want {
			t.Errorf("%.80q: %q, want %q", c.authorization, got, c.want)
		}
	}
}
