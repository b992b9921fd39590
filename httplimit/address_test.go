package httplimit

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

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

// Only the configured header counts. What is left of an address that is not trusted, or of an
// element without an address, is the client's.
func TestOneConfiguredHeader(t *testing.T) {
	for _, c := range []struct{ header, value, want string }{
		{"cf-connecting-ip", "198.51.100.2", "198.51.100.2"}, {"cf-connecting-ip", "", "10.0.0.1"},
		{"forwarded", `for=192.0.2.6, for="198.51.100.2:80";by=b, for=10.0.0.2`, "198.51.100.2"},
		{"forwarded", "for=192.0.2.6, for=_hidden, for=10.0.0.2", "10.0.0.2"},
		{"forwarded", "", "10.0.0.1"},
	} {
		l := mustNew(t, jsonRule("r", "[]", 1, ""), WithClientAddress(ClientAddress{
			Trusted: prefixes(t, "10.0.0.0/8"), Header: c.header,
		}))
		r := from("10.0.0.1:1", "203.0.113.1")
		r.Header.Set(c.header, c.value)
		if got := l.ClientAddress(r).String(); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.header, c.value, got, c.want)
		}
		r.RemoteAddr = "192.0.2.9:1"
		if got := l.ClientAddress(r).String(); got != "192.0.2.9" {
			t.Errorf("%s %s of a peer that is not trusted: %s", c.header, c.value, got)
		}
		if !l.TrustsPeer(from("10.0.0.1:1")) || l.TrustsPeer(r) || l.TrustsPeer(from("@")) {
			t.Error("which peers are trusted")
		}
	}
}

// A server that finds addresses itself has the same networks and spellings of addresses.
func TestFindReplacesTrustedProxies(t *testing.T) {
	var found netip.Addr
	find := func(*http.Request) netip.Addr { return found }
	l := mustNew(t, jsonRules("", jsonRule("r", `["ip:address"]`, 1, "")),
		WithClientAddress(ClientAddress{Find: find, IPv6Bits: 56}))
	for _, c := range []struct{ found, want, key string }{
		{"203.0.113.1", "203.0.113.1", "203.0.113.1"},
		{"::ffff:203.0.113.1", "203.0.113.1", "203.0.113.1"},
		{"64:ff9b::203.0.113.1", "203.0.113.1", "203.0.113.1"},
		{"fe80::1%eth0", "fe80::1", "fe80::/56"},
		{"2001:db8:0:ff::1", "2001:db8:0:ff::1", "2001:db8::/56"},
		{"::", "invalid IP", "unknown"},
		{"", "invalid IP", "unknown"},
	} {
		found, _ = netip.ParseAddr(c.found)
		r := from("10.0.0.1:1", "198.51.100.1")
		if got := l.ClientAddress(r).String(); got != c.want {
			t.Errorf("%q: the address is %s, want %s", c.found, got, c.want)
		}
		if got := l.Explain(r)[0].Key[0].Value; got != c.key {
			t.Errorf("%q: the key is %s, want %s", c.found, got, c.key)
		}
		if l.TrustsPeer(r) {
			t.Error("the peer is trusted")
		}
	}
}

// Early data of HTTP/3 has an address that may be forged. A rule that does not need it is enforced.
func TestEarlyData(t *testing.T) {
	const except = `"except": [{"ip:address": ["192.0.2.1"]}], `
	for rule, want := range map[string]int{
		jsonRule("r", `["ip:address"]`, 1, ""): 425, jsonRule("r", `["header:k"]`, 1, ""): 200,
		strings.Replace(jsonRule("r", `[]`, 1, ""), "{", "{"+except, 1): 425,
	} {
		s, r := newSite(t, rule), by("192.0.2.1", "K: 1")
		r.ProtoMajor, r.TLS = 3, &tls.ConnectionState{}
		if w := s.send(r); w.Code != want {
			t.Errorf("%s: status %d, want %d", rule, w.Code, want)
		}
	}
}

// The holder of a /48 has 65,536 networks of a /64. The parents bound what they get together.
func TestParentNetworksAreChargedTogether(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["ip:address/64,/56,/48"]`, 2, "")))
	granted := 0
	for i := range 400 {
		if s.send(by(sprintf("2001:db8:1:%x::1", i*163))).Code == http.StatusOK {
			granted++
		}
	}
	if granted != 32 { // 2 · 4 · 4
		t.Errorf("%d requests from one /48 are granted, want 32", granted)
	}
	// A /56 has 8, and a /64 has 2.
	granted = 0
	for i := range 100 {
		if s.send(by(sprintf("2001:db8:2:%x::1", i))).Code == http.StatusOK {
			granted++
		}
	}
	if granted != 8 {
		t.Errorf("%d requests from one /56 are granted, want 8", granted)
	}
	for i, want := range []int{200, 200, 429} {
		if w := s.send(by(sprintf("2001:db8:3::%d", i))); w.Code != want {
			t.Errorf("request %d from one /64: status %d, want %d", i, w.Code, want)
		}
	}
}

// An error of a key is reported once, however many parents there are.
func TestKeyWithParentsHasOneError(t *testing.T) {
	for key, p := range map[string]*Policy{
		"nosuch": mustParse(t, jsonRule("r", `["nosuch", "ip:address/64,/48"]`, 1, "")),
		"täg":    Rules(Rule{Name: "r", Keys: []string{"täg"}}),
	} {
		if _, err := New(p); err == nil || strings.Count(err.Error(), key) != 1 {
			t.Error(err)
		}
	}
}
