package httplimit

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"
)

// Spellings that mean the same to servers have one bucket and one match.
func TestSpellingsOfFieldValues(t *testing.T) {
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	field := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, c := range []struct {
		key, want   string // of a match
		same, other []func(*http.Request)
	}{
		{
			"header:host", "Api.test:8080",
			[]func(*http.Request){host("api.test"), host("API.test"), host("api.test:80"),
				host("api.test."), host("Api.TEST.:443")},
			[]func(*http.Request){host("b.test"), host("api.test.b"), host("")},
		},
		{
			"header:Authorization", "Bearer  Ab",
			[]func(*http.Request){field("Authorization", "Bearer Ab"),
				field("Authorization", "bearer\tAb"), field("Authorization", "BEARER   Ab x "),
				field("Authorization", "Bearer Ab,x"), field("Authorization", "Bearer Ab;x"),
				field("Authorization", "Bearer_Ab")},
			[]func(*http.Request){field("Authorization", "Bearer ab"),
				field("Authorization", "BearerAb"), field("Authorization", "Basic Ab"),
				field("Authorization", "Bearer"), field("Authorization", "Digest Ab, x")},
		},
		{
			"header:authorization", "Basic dTpw",
			[]func(*http.Request){field("Authorization", "basic dTpw"),
				field("Authorization", "BASIC  dT.p w=="), field("Authorization", "Basic dTpwA")},
			[]func(*http.Request){field("Authorization", "basic dTpx"), field("Authorization", "Basic"),
				field("Authorization", "Basic dTpw xx")},
		},
		{
			"header:proxy-authorization", "basic dTo=",
			[]func(*http.Request){field("Proxy-Authorization", "Basic dTo="),
				field("Proxy-Authorization", "Basic dTo"), field("Proxy-Authorization", "Basic dTp=")},
			[]func(*http.Request){field("Proxy-Authorization", "Basic dTox")},
		},
		{
			"header:authorization", "Token token=Ab",
			[]func(*http.Request){field("Authorization", "token  token=Ab, x=1")}, nil,
		},
		{
			"header:content-type", "Application/json",
			[]func(*http.Request){field("Content-Type", "application/json"),
				field("Content-Type", "application/JSON ; charset=utf-8"),
				field("Content-Type", "application/json;x=1;y=2")},
			[]func(*http.Request){field("Content-Type", "application/jsonp"),
				field("Content-Type", "text/plain;application/json")},
		},
	} {
		s := newSite(t, jsonRules("", jsonRule("r", `["ip:address"]`, 99, sprintf(`"match": {%q: %q}`,
			c.key, c.want))))
		keys := newSite(t, jsonRules("", jsonRule("r", sprintf("[%q]", c.key), 1,
			`"on_missing": "shared"`)))
		for i, change := range c.same {
			r := request()
			change(r)
			if got := s.Explain(r); len(got) != 1 {
				t.Errorf("%s, spelling %d: the match does not hold", c.key, i)
			}
			if w := keys.send(r); (w.Code == http.StatusOK) != (i == 0) {
				t.Errorf("%s, spelling %d: status %d", c.key, i, w.Code)
			}
		}
		for i, change := range c.other {
			r := request()
			change(r)
			if got := s.Explain(r); len(got) != 0 {
				t.Errorf("%s, other value %d: the match holds", c.key, i)
			}
			if w := keys.send(r); w.Code != http.StatusOK {
				t.Errorf("%s, other value %d: status %d", c.key, i, w.Code)
			}
		}
	}
}

// A cookie has one bucket for all spellings that some server reads as the same value.
func TestCookies(t *testing.T) {
	s := newSite(t, jsonRule("r", `["cookie:connect.sid"]`, 1, `"match": {"cookie:plan": "free"}`))
	for _, c := range []struct{ lines, want string }{
		{"plan=free; connect.sid=s%3Aa%", "s:a%"}, {`connect.sid="s\072\a\7";plan = free`, "s:a7"},
		{"plan=free;\u2003\xa0connect.sid =s:a\x85;x", "s:a"}, {"plan=free; Connect.Sid=a", ""},
		{"plan=free; connect.sid=a=b%", "a=b%"}, {"plan=free; connect.sid=;xconnect.sid=1", ""},
		{"plan=free; connect.sid=a;x=1 connect.sid =a", "twice"}, {"connect.sid=a; plan=paid", ""},
		{"plan=free; connect.sid=a|connect.sid=b", "twice"}, {"plan=free|connect.sid=b", "b"},
		{"plan=free; x=1 connect.sid=b", "twice"}, {"plan=free; x=connect.sid", ""}, {"plan=free", ""},
	} {
		r := request()
		r.Header["Cookie"] = strings.Split(c.lines, "|")
		got := ""
		for _, e := range s.Explain(r) {
			if got = e.Key[0].Value; e.AmbiguousKey == "cookie:connect.sid" {
				got = "twice"
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.lines, got, c.want)
		}
	}
}

func TestMediaTypes(t *testing.T) {
	for _, c := range []struct {
		want, value string
		holds       bool
	}{
		{"text/event-stream", "text/event-stream", true},
		{"text/event-stream", "*/*, Text/Event-Stream;q=0.5", true},
		{"text/event-stream", `a/b;x="a,text/event-stream", c/d`, false},
		{"text/event-stream", `a/b;x="\",", text/event-stream`, true},
		{"text/event-stream", "*/*", false},
		{"text/html; charset=utf-8", "text/html", false},
		{"text/html; charset=utf-8", "text/HTML;Charset=UTF-8", true},
		{"text/html; charset=utf-8", `text/html; charset="utf-8"`, true},
		{"text/html; charset=utf-8", "text/html;charset=latin1", false},
		{"text/html;b=1;a=2", "text/html; a=2; b=1", true},
		{"no type;", "No Type;", true},
	} {
		for _, header := range []string{"Accept", "Content-Type"} {
			holds, _ := matcher(header, c.want)
			if got := holds(c.value); got != c.holds {
				t.Errorf("%s: %s matches %s: %v", header, c.value, c.want, got)
			}
		}
	}
	for list, want := range map[string]string{
		"": "", "text/html": "text/html", "Text/HTML": "text/html", "a/b ; c=d,, E/f": "a/b,e/f",
		"ABC": "abc", "A/b": "a/b", "a/Z": "a/z", "a/b;": "a/b", ";": "",
		"a/b,c/d": "a/b,c/d", "a/b\t": "a/b",
		`multipart/form-data; boundary="a,b"`: "multipart/form-data",
	} {
		if got := mediaTypes(list); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}

// An overlooked claim would be a rule that does not apply.
func TestClaimTextOfEveryKind(t *testing.T) {
	type plan string
	type number uint8
	for want, claims := range map[string][]any{
		"gold": {"gold", plan("gold")}, "true": {true},
		"7": {
			7, int8(7), int64(7), uint(7), uint64(7), number(7), 7.0, float32(7),
			json.Number("7"),
		},
		"18446744073709551615": {uint64(math.MaxUint64)}, "-7": {-7},
		"0.1": {0.1, float32(0.1)}, "0.25": {0.25},
		"1000":  {1000.0, json.Number("1e3"), json.Number("1000.0"), json.Number("1E+3")},
		"0":     {math.Copysign(0, -1), json.Number("-0"), json.Number("0e9")},
		"1e999": {json.Number("1e999")}, "12345678901234567891": {json.Number("12345678901234567891")},
		"100000000000000000000000": {1e23}, "": {
			nil,
			[]string{"a"},
			map[string]any{},
			&struct{}{},
			func() {}, 1i, "",
		},
	} {
		for _, claim := range claims {
			if got := claimText(claim); got != want {
				t.Errorf("%T %v is %q, want %q", claim, claim, got, want)
			}
		}
	}
}

// token returns a bearer token with this payload and a false signature.
func token(payload string) string {
	e := base64.RawURLEncoding.EncodeToString
	return "Bearer " + e([]byte(`{"alg":"none"}`)) + "." + e([]byte(payload)) + ".c2ln"
}

const byOrg = `"rules": [{"name": "r", "limit_keys": ["jwt:org"], "algorithm": "token_bucket",
	"algorithm_config": {"rps": 1, "burst": 1}}]`

func TestTokensAreNotDecodedByDefault(t *testing.T) {
	for _, jwt := range []string{``, `"jwt": "context",`} {
		newSite(t, `{`+jwt+byOrg+`}`).unlimited("Authorization: " + token(`{"org": "a"}`))
	}
}

func TestClaimsOfTheApplicationComeFirst(t *testing.T) {
	s := newSite(t, `{"jwt": "unverified", `+byOrg+`}`)
	r := request("Authorization: " + token(`{"org": "forged"}`))
	r = r.WithContext(ContextWithClaims(r.Context(), map[string]any{"org": "real"}))
	if got := FormatKey(s.Explain(r)[0].Key); got != "jwt:org=real" {
		t.Error(got)
	}
	// If the application supplies no claims, the token is not read instead.
	r = r.WithContext(ContextWithClaims(r.Context(), map[string]any{}))
	if got := s.Explain(r); len(got) > 0 {
		t.Error(got)
	}
}

func TestUnverifiedTokens(t *testing.T) {
	s := newSite(t, `{"jwt": "unverified", `+byOrg+`}`)
	ok := token(`{"org": "a"}`)
	parts := strings.Split(ok, ".")
	long := func(n int) string { return token(sprintf(`{"org": %*q}`, n-9, "a")) } // n bytes of claims
	for _, c := range []struct{ authorization, want string }{
		{ok, "a"},
		{"Bearer\u00a0" + ok[7:] + "\xa0x", "a"},
		{token(`{"org": 12345678901234567890}`), "12345678901234567890"},
		{long(6 << 10), "a"},
		{long(6<<10 + 1), ""},
		{token(`{"org": "a"} {}`), ""},
		{token(`{}`), ""},
		{token(`[]`), ""},
		{token(`{"org": "a"`), ""},
		{"DPoP id.example.org " + ok[7:] + ",.", "a"},
		{"Token token=" + ok[7:] + ";.", "a"},
		{`Bearer "` + ok[7:] + `"`, "a"},
		{"xBearer_" + ok[7:], "a"},
		{ok[7:], "a"},
		{"", ""},
		{"Bearer ..", ""},
		{parts[0] + "." + parts[1], ""},
		{ok + ".x", ""},
		{parts[0] + ".!!!." + parts[2], ""},
		{parts[0] + "." + parts[1] + "=." + parts[2], ""},
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
