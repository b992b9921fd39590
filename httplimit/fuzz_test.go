package httplimit

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// FuzzClientAddress checks the walk against the plainest statement of it: all entries of
// all lines in a list, from the right.
func FuzzClientAddress(f *testing.F) {
	f.Add("10.0.0.1:1", "1.1.1.1, 198.51.100.1, 10.2.3.4")
	f.Add("10.0.0.1:1", "198.51.100.1\n10.0.0.9,\tunknown")
	f.Add("[::ffff:10.0.0.1%eth0]:1", "[2001:db8::7]:80\n::ffff:10.9.9.9")
	f.Add("@", ",,,")
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("2001:db8::/32")}
	c, err := ClientAddress{Trusted: trusted}.normalize()
	if err != nil {
		f.Fatal(err)
	}
	plain := func(a netip.Addr) bool {
		return trusted[0].Contains(a) || trusted[1].Contains(a)
	}
	f.Fuzz(func(t *testing.T, peer, lines string) {
		r := &http.Request{RemoteAddr: peer,
			Header: http.Header{"X-Forwarded-For": strings.Split(lines, "\n")}}
		got := c.of(r)

		want, _ := parseAddress(peer)
		entries := strings.Split(strings.Join(strings.Split(lines, "\n"), ","), ",")
		for plain(want) && len(entries) > 0 {
			last := len(entries) - 1
			next, ok := parseAddress(entries[last])
			if !ok {
				break
			}
			want, entries = next, entries[:last]
		}
		if got != want {
			t.Fatalf("%v, want %v", got, want)
		}
		if got.Is4In6() || got.Zone() != "" {
			t.Fatalf("%v is not in its plain form", got)
		}
		if n := c.network(got); n.IsValid() != got.IsValid() || n.IsValid() && c.network(n) != n {
			t.Fatalf("network of %v is %v", got, n)
		}
		// What is an address is understood in all its forms. (A zone may be anything, even
		// a bracket or a space.)
		if a, err := netip.ParseAddr(peer); err == nil && a.Zone() == "" {
			for _, form := range []string{peer, "[" + peer + "]", "[" + peer + "]:80",
				" " + peer} {
				if b, ok := parseAddress(form); !ok || b != a.Unmap() {
					t.Fatalf("%q is %v", form, b)
				}
			}
		}
	})
}

// FuzzPolicy loads whatever comes. What is accepted must work, and answer in fields that
// can be parsed.
func FuzzPolicy(f *testing.F) {
	for _, policy := range pageExamples {
		f.Add([]byte(policy))
	}
	f.Add([]byte(jsonRules(`"evaluation": "first_match", "jwt": "unverified", "mode": "shadow"`,
		jsonRule("a", `["jwt:sub", "query:q"]`, 1<<30,
			`"on_missing": "shared", "match": {"header:x": 1}`))))
	f.Add([]byte(`{"policies": [{"id": "a", "spec": {"selector": {"hosts": ["a"]}, "rules": []}}]}`))
	f.Add([]byte(oneRule(`["header:k"]`,
		`"rps": 1e-9, "burst": 1, "cost_source": "header:w", "min_cost": 1e16`)))
	f.Add([]byte(`{"rules": [{"rules": 1e9999}, null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePolicy(data)
		if err != nil {
			if p != nil || !strings.HasPrefix(err.Error(), "httplimit: ") {
				t.Fatalf("%v %v", p, err)
			}
			return
		}
		l, err := New(p, WithPolicyField(), WithXRateLimit())
		if err != nil {
			if !strings.Contains(err.Error(), "has no extractor") {
				t.Fatalf("what ParsePolicy accepts New does not: %v", err)
			}
			return
		}
		h := l.Middleware(http.HandlerFunc(nothing))
		for range 3 {
			w := httptest.NewRecorder()
			r := request("/v1/x?q=1", "K: 1", "W: 0.5", "X-Api-Key: k")
			h.ServeHTTP(w, r)
			for _, field := range []string{"RateLimit", "RateLimit-Policy"} {
				if _, err := httpsfv.UnmarshalList(w.Header().Values(field)); err != nil {
					t.Fatalf("%s: %v in %q", field, err, w.Header())
				}
			}
			switch w.Code {
			case http.StatusOK:
			case http.StatusTooManyRequests, http.StatusBadRequest:
				problem(t, w)
			default:
				t.Fatalf("status %d", w.Code)
			}
		}
		if err := l.SetPolicy(p); err != nil {
			t.Fatal(err)
		}
	})
}
