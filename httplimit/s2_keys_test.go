package httplimit

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Section 2: the keys of a rule.

func TestS2KeysAreAnyOfTheKinds(t *testing.T) {
	claims := WithClaims(func(r *http.Request) map[string]any {
		return map[string]any{"org": r.Header.Get("Test-Org"), "n": 12.0, "list": []any{"a"}}
	})
	tenant := WithExtractor("tenant",
		func(r *http.Request) string { return r.Header.Get("Test-Tenant") })
	for _, c := range []struct{ key, a, b, missing string }{
		{"header:x-api-key", "X-Api-Key: a", "X-Api-Key: b", "X-Api-Key: "},
		{"header:X-API-KEY", "x-api-key: a", "x-api-key: b", "X-Api_Key: a"},
		{"query:user", "/?user=a", "/?x=1&user=b", "/?user="},
		{"query:user", "/?%75ser=%61", "/?user=b&user=a", "/?User=a"},
		{"jwt:org", "Test-Org: a", "Test-Org: b", "Test-Org: "},
		{"tenant", "Test-Tenant: a", "Test-Tenant: b", "Test-Tenant: "},
	} {
		s := newSite(t, jsonRules("", jsonRule("r", sprintf("[%q]", c.key), 2, "")), claims,
			tenant)
		s.granted(2, c.a)
		s.granted(2, c.b)
		s.unlimited(c.missing)
	}
	// A claim that is no one text is missing.
	newSite(t, jsonRules("", jsonRule("r", `["jwt:list"]`, 2, "")), claims).unlimited("/")
	newSite(t, jsonRules("", jsonRule("r", `["jwt:n"]`, 2, "")), claims).granted(2)
}

// A claim that is overlooked is a rule that does not apply.
func TestS2ClaimsOfEveryKind(t *testing.T) {
	type plan string
	type number uint8
	for want, claims := range map[string][]any{
		"gold": {"gold", plan("gold")}, "true": {true},
		"7": {7, int8(7), int64(7), uint(7), uint64(7), number(7), 7.0, float32(7),
			json.Number("7")},
		"18446744073709551615": {uint64(math.MaxUint64)}, "-7": {-7}, "0.1": {0.1, float32(0.1)},
		"100000000000000000000000": {1e23}, "": {nil, []string{"a"}, map[string]any{}, &struct{}{},
			func() {}, 1i, ""},
	} {
		for _, claim := range claims {
			if got := claimText(claim); got != want {
				t.Errorf("%T %v is %q, want %q", claim, claim, got, want)
			}
		}
	}
}

func TestS2NoKeysMeansOneBucketForEverybody(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `[]`, 2, "")))
	r := request()
	r.RemoteAddr = "203.0.113.9:1"
	s.send(r)
	s.granted(1)
}

func TestS2FirstOfSeveralValuesAndEmptyIsMissing(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["header:k"]`, 2, "")))
	s.granted(2, "K: a", "K: b")
	if e := s.Explain(request("K: a", "K: c")); e[0].Allowed {
		t.Error("the second value makes another key")
	}
	s.unlimited("K: ", "K: b")
}

func TestS2OnMissing(t *testing.T) {
	policy := func(v string) string {
		return jsonRules("", jsonRule("r", `["ip:address", "header:k"]`, 2,
			`"on_missing": "`+v+`"`))
	}
	newSite(t, policy("skip")).unlimited("/")
	s := newSite(t, policy("shared"))
	s.granted(2)
	s.granted(2, "K: \xfe") // the mark of what is missing is no value

	var told Event
	s = newSite(t, policy("reject"), WithHooks(Hooks{Refused: func(_ *http.Request,
		e Event) {
		told = e
	}}))
	w := s.get()
	if w.Code != http.StatusBadRequest || s.served > 0 || told.RetryAfter != tb.Never ||
		s.Stats()[0].Refused != 1 {
		t.Errorf("status %d, served %d, told %+v", w.Code, s.served, told)
	}
	if want := `Policy r needs header:k.`; problem(t, w).Detail != want {
		t.Errorf("%s, want %s", w.Body, want)
	}
	if e := s.Explain(request())[0]; e.MissingKey != "header:k" || e.Allowed || e.RetryAfter != tb.Never {
		t.Errorf("%+v", e)
	}
	s.granted(2, "K: 1")

	// The first of several is named, also if it is there when it is looked for again:
	// the answer must not be an empty 200.
	asked := 0
	s = newSite(t, jsonRules("", jsonRule("r", `["x", "header:k"]`, 2,
		`"on_missing": "reject"`)), WithExtractor("x", func(*http.Request) string {
		asked++
		return strings.Repeat("1", asked-1)
	}))
	w = s.get()
	if w.Code != http.StatusBadRequest || problem(t, w).Detail != "Policy r needs x." {
		t.Errorf("status %d %s", w.Code, w.Body)
	}
}

func TestS2CompositeKeysDoNotCollide(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["header:a", "header:b"]`, 1, "")))
	s.granted(1, "A: x|y", "B: z")
	s.granted(1, "A: x", "B: y|z")
	s.granted(1, "A: xy", "B: z")
	s.granted(1, "A: x", "B: yz")
	s.granted(1, "A: x\x01y", "B: z")

	// No two lists of parts make the same key.
	l := mustNew(t, jsonRules("", jsonRule("r", `["header:a", "header:b"]`, 1,
		`"on_missing": "shared"`)))
	rnd := rand.New(rand.NewPCG(1, 2))
	seen := map[string][2]string{}
	for range 20_000 {
		var parts [2]string
		for i := range parts {
			b := make([]byte, rnd.IntN(4))
			for j := range b {
				b[j] = []byte{0, 1, 2, 3, 4, 6, 'a', 65}[rnd.IntN(8)] // of them lengths
			}
			parts[i] = string(b)
		}
		r := request()
		r.Header["A"], r.Header["B"] = []string{parts[0]}, []string{parts[1]}
		c := l.begin(r)
		c.findRules()
		if other, ok := seen[c.entries[0].key]; ok && other != parts {
			t.Fatalf("%q and %q have one key", parts, other)
		}
		seen[strings.Clone(c.entries[0].key)] = parts
		c.end()
	}
	if len(seen) < 1000 {
		t.Fatalf("only %d different lists", len(seen))
	}
}

func TestS2LongPartsAreHashed(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["header:a"]`, 1, "")))
	long := strings.Repeat("x", 129)
	for _, v := range []string{long[:128], long, long + "y", strings.Repeat("x", 1<<20)} {
		s.granted(1, "A: "+v)
	}
	sum := sha256.Sum256([]byte(long)) // may be sent too, and is another value
	s.granted(1, "A: "+string(sum[:]))
	for n, want := range map[int]int{63: 64, 128: 130, 129: 33, 1 << 20: 33} {
		c := s.begin(request("A: " + strings.Repeat("x", n)))
		c.findRules()
		if got := len(c.entries[0].key); got != want {
			t.Errorf("%d bytes make a key of %d, want %d", n, got, want)
		}
		c.end()
	}
}

func TestS2MatchComparesAllPairsAsText(t *testing.T) {
	s := newSite(t, jsonRules("", jsonRule("r", `["ip:address"]`, 2,
		`"match": {"jwt:level": 3, "jwt:paid": true, "header:x-plan": "gold",
			"ip:address": "192.0.2.1"}`)))
	send := func(level, paid any, plan string) (applies bool) {
		r := request("X-Plan: " + plan)
		r = r.WithContext(ContextWithClaims(r.Context(), map[string]any{"level": level,
			"paid": paid}))
		return len(s.Explain(r)) > 0
	}
	for _, c := range []struct {
		level, paid any
		plan        string
		want        bool
	}{
		{3, true, "gold", true}, {int64(3), "true", "gold", true}, {3.0, true, "gold", true},
		{"3", true, "gold", true}, {3.5, true, "gold", false}, {3, false, "gold", false},
		{3, true, "Gold", false}, {nil, true, "gold", false},
	} {
		if got := send(c.level, c.paid, c.plan); got != c.want {
			t.Errorf("%v applies: %v", c, got)
		}
	}
}

func TestS2ErrorsOfLimitersAndOptions(t *testing.T) {
	broken := errors.New("no store")
	p := mustParse(t, jsonRules("", jsonRule("r", "[]", 1, "")))
	if _, err := New(p, WithLimiter(func(Rule) (tb.Limiter, error) {
		return nil,
			broken
	})); !errors.Is(err, broken) {
		t.Error(err)
	}
	for i, o := range []Option{
		WithExtractor("", nil), WithClaims(nil), WithReasonField("a b"),
		WithClientAddress(ClientAddress{Header: "forwarded"}),
		WithClientAddress(ClientAddress{Trusted: make([]netip.Prefix, 1)}),
		WithClientAddress(ClientAddress{IPv4Bits: -1}),
		WithClientAddress(ClientAddress{IPv6Bits: -1}),
		WithClientAddress(ClientAddress{IPv4Bits: 33}),
	} {
		if _, err := New(p, o); err == nil {
			t.Errorf("option %d is accepted", i)
		}
	}
}
