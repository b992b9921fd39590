package httplimit

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestErrorsOfOptions(t *testing.T) {
	p := mustParse(t, jsonRules("", jsonRule("r", "[]", 1, "")))
	for i, o := range []Option{
		WithExtractor("", nil), WithClaims(nil), WithFields(Fields{Reason: "a b"}),
		WithClientAddress(ClientAddress{Trusted: make([]netip.Prefix, 1)}),
		WithClientAddress(ClientAddress{
			Trusted: prefixes(t, "10.0.0.0/8"), Find: func(*http.Request) netip.Addr { return netip.Addr{} },
		}),
		WithClientAddress(ClientAddress{IPv4Bits: -1}),
		WithClientAddress(ClientAddress{IPv6Bits: -1}),
		WithClientAddress(ClientAddress{IPv4Bits: 33}),
		WithTimeout(-1),
	} {
		if _, err := New(p, o); err == nil {
			t.Errorf("option %d is accepted", i)
		}
	}
}

func TestWithLimiterOptions(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["header:k"]`, 1, "")),
		WithLimiterOptions(tb.WithMaxKeys(2)), WithLimiterOptions(tb.WithOverflow(tb.RefuseNew)))
	s.granted(1, "K: 1")
	s.granted(1, "K: 2")
	s.granted(0, "K: 3")
	if st := s.Stats()[0]; st.Table.Keys != 2 || st.Table.RefusedNew == 0 {
		t.Errorf("%+v", st)
	}
}

// Fields change while the limiter is used, and stay across a reload.
func TestSetFields(t *testing.T) {
	policy := jsonRules("", jsonRule("r", "[]", 1, ""))
	s := newSite(t, policy, WithFields(Fields{Policy: true}))
	wants(t, s.get(), `RateLimit-Policy: "r";q=1;w=1`)
	if err := s.SetFields(Fields{Reason: "x-why"}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetFields(Fields{Reason: "a b"}); err == nil {
		t.Error("the name of a field with a space is accepted")
	}
	for range 2 {
		wants(t, s.get(), "X-Why: token_bucket_exceeded", "RateLimit-Policy: ")
		s.reload(policy)
	}
}

// Another shared secret gives another jitter, and the same buckets.
func TestSetSharedSecret(t *testing.T) {
	s := newSite(t, oneRule(`["header:k"]`, `"rps": 0.1, "burst": 1`),
		WithStore(referenceStore{t: t}), steady())
	s.granted(1, "K: 1")
	wants(t, s.get("K: 1"), "Retry-After: 10")
	s.SetSharedSecret("1")
	if got := s.get("K: 1").Header().Get("Retry-After"); got == "10" {
		t.Error("the jitter is as before")
	}
	s.SetSharedSecret("2024")
	wants(t, s.get("K: 1"), "Retry-After: 10")
}

func TestExtractorsOfAFunction(t *testing.T) {
	find := func(key string) (func(*http.Request) string, error) {
		switch {
		case key == "{}":
			return nil, errors.New("{} has no name")
		case !strings.HasPrefix(key, "{"):
			return nil, nil
		}
		return func(r *http.Request) string { return r.Header.Get(strings.Trim(key, "{}")) }, nil
	}
	one := func(*http.Request) string { return "1" }
	policy := `{"rules": [` + jsonRule("r", `["{K}", "{one}"]`, 1, `"match": {"{L}": "x"}`) + `]}`
	s := newSite(t, policy, WithExtractors(find), WithExtractor("{one}", one))
	s.granted(1, "K: 1", "L: x")
	s.granted(1, "K: 2", "L: x")
	s.unlimited("L: x")
	s.unlimited("K: 1")
	document := jsonRules("", jsonRule("r", `["k", "{}"]`, 1, `"match": {"{}": "x"}`))
	_, err := ParsePolicyFor([]byte(document), WithExtractors(find))
	for _, want := range []string{
		"rules[0].limit_keys[0] must be ip:address", "rules[0].limit_keys[1] {} has no name",
		`rules[0].match["{}"] {} has no name`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}
