package httplimit

import (
	"net/http"
	"testing"
)

// Keys that nothing supplies are reported with all other errors.
func TestParsePolicyForReportsAllErrorsAtOnce(t *testing.T) {
	policy := jsonRules(`"typo": 1`, jsonRule("a", `["ip:port", "header:"]`, 1, ""),
		jsonRule("a", `["nosuch", "jwt:sub"]`, 1, `"match": {"foo": 1},
			"except": [{"ip:address": ["10.0.0.0/8", "localhost"]}]`))
	const unknown = "must be ip:address, header:<name>, query:<name>, cookie:<name>, jwt:<claim> " +
		"or a key that the application adds "
	const want = `httplimit: policy:
typo is an unknown field
rules[0].limit_keys[1] must be header:<name>, with a name of A-Z a-z 0-9 _ - (got "header:")
rules[1].name must be unique (got "a" again)
rules[0].limit_keys[0] ` + unknown + `(got "ip:port")
rules[1].limit_keys[0] ` + unknown + `(got "nosuch")
rules[1].limit_keys[1] needs claims, which only "jwt": "unverified" supplies here (got "jwt:sub")
rules[1].match.foo ` + unknown + `(got "foo")
rules[1].except[0]["ip:address"][1] ` + mustBeNetwork + ` (got "localhost")`
	if p, err := ParsePolicyFor([]byte(policy), WithoutClaims()); p != nil || err == nil ||
		err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
	supplied := WithExtractor("nosuch", func(*http.Request) string { return "" })
	p, err := ParsePolicyFor([]byte(jsonRule("a", `["nosuch"]`, 1, "")), supplied)
	if err != nil || len(p.Sets) != 1 {
		t.Error(err)
	}
	if _, err := ParsePolicyFor([]byte(jsonRule("a", "[]", 1, "")), WithTimeout(-1)); err == nil {
		t.Error("an option with an error is accepted")
	}
}
