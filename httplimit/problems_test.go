package httplimit

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

// Keys that nothing supplies are reported with all other errors.
func TestParsePolicyForReportsAllErrorsAtOnce(t *testing.T) {
	policy := jsonRules(`"typo": 1`, jsonRule("a", `["ip:port", "header:"]`, 1, ""),
		jsonRule("a", `["nosuch", "jwt:sub"]`, 1, `"match": {"foo": 1}`))
	const unknown = "must be ip:address, header:<name>, query:<name>, jwt:<claim> or a key " +
		"that the application adds "
	const want = `httplimit: policy:
typo is an unknown field
rules[0].limit_keys[1] must be header:<name>, with a name of A-Z a-z 0-9 _ - (got "header:")
rules[1].name must be unique (got "a" again)
rules[0].limit_keys[0] ` + unknown + `(got "ip:port")
rules[1].limit_keys[0] ` + unknown + `(got "nosuch")
rules[1].limit_keys[1] needs claims, which only "jwt": "unverified" supplies here (got "jwt:sub")
rules[1].match.foo ` + unknown + `(got "foo")`
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

// A document of a megabyte has no error of a megabyte, and no million errors.
func TestErrorsAreBounded(t *testing.T) {
	long := strings.Repeat("\u00e9", 1<<20)
	for _, policy := range []string{
		sprintf(`{%q: 1, "rules": []}`, long), jsonRule("a", sprintf("[%q]", long), 1, ""),
		jsonRules(sprintf(`"jwt": %q`, long), jsonRule("a", "[]", 1, "")),
		oneRule("[]", `"rps": 1, "burst": 1`+strings.Repeat("0", 1<<20)),
	} {
		_, err := ParsePolicy([]byte(policy))
		if err == nil || len(err.Error()) > 3<<10 || !utf8.ValidString(err.Error()) ||
			!strings.Contains(err.Error(), "…") {
			t.Errorf("%.100s: the error has %d bytes", policy, len(sprint(err)))
		}
	}
	unknown := `{"rules": [` + strings.Repeat(`{"x": 1},`, 20_000) + `{}]`
	for i := range 5 {
		unknown += sprintf(`, "y%d": 1`, i)
	}
	_, err := ParsePolicy([]byte(unknown + "}"))
	all := strings.Split(err.Error(), "\n")[1:]
	var more MoreErrors
	// Each rule lacks a name, limit_keys and algorithm_config.
	if want := 20_000*4 + 3 + 5 - 100; len(all) != 101 || !errors.As(err, &more) ||
		int(more) != want || all[100] != sprintf("and %d more", want) {
		t.Errorf("%d lines, of which the last is %q, want %d", len(all), all[len(all)-1], want)
	}
}
