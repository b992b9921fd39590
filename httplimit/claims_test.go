package httplimit

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

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
	long := func(n int) string { // a token of n bytes
		t := token(`{"org": "a"}`)
		return t + strings.Repeat("x", n+len("Bearer ")-len(t))
	}
	for _, c := range []struct{ authorization, want string }{
		{ok, "a"},
		{"bearer" + ok[6:], "a"},
		{"Bearer  " + ok[7:], "a"},
		{token(`{"org": 12345678901234567890}`), "12345678901234567890"},
		{token(`{"org": true}`), "true"},
		{token(`{"org": 1.50}`), "1.5"},
		{long(8 << 10), "a"},
		{long(8<<10 + 1), ""},
		{token(`{"org": null}`), ""},
		{token(`{"org": ["a"]}`), ""},
		{token(`{"org": {"a": 1}}`), ""},
		{token(`{"org": "a"} {}`), ""},
		{token(`{"org": "a"}}`), ""},
		{token(`{"org": ""}`), ""},
		{token(`{}`), ""},
		{token(`[]`), ""},
		{token(`{"org": "a"`), ""},
		{token(``), ""},
		{"Basic " + ok[7:], ""},
		{ok[7:], ""},
		{"Bearer", ""},
		{"Bearer ", ""},
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
