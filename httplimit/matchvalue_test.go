package httplimit

import (
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

// The value of ip:address is an address or a network.
func TestMatchOfAddresses(t *testing.T) {
	for _, c := range []struct {
		want, client string
		holds        bool
	}{
		{"192.0.2.0/24", "192.0.2.255", true},
		{"192.0.2.0/24", "192.0.3.0", false},
		{"192.0.2.77/24", "192.0.2.1", true},
		{"192.0.2.1/32", "192.0.2.1", true},
		{"192.0.2.1/32", "192.0.2.2", false},
		{"0.0.0.0/0", "192.0.2.1", true},
		{"0.0.0.0/0", "2001:db8::1", false},
		{"::/0", "2001:db8::1", true},
		{"2001:db8::/32", "2001:db8:1::1", true},
		{"2001:DB8::/32", "2001:db9::1", false},
		{"::ffff:192.0.2.0/120", "192.0.2.7", true},
		{"192.0.2.0/24", "::ffff:192.0.2.7", true},
		{"192.0.2.0/24", "64:ff9b::192.0.2.7", true},
		{"192.0.2.1", "192.0.2.1", true},
		{"::ffff:192.0.2.1", "192.0.2.1", true},
		{"64:ff9b::192.0.2.1", "192.0.2.1", true},
		{"2001:0db8::0:1", "2001:db8::1", true},
		{"2001:db8::1", "2001:db8::2", false},
	} {
		s := newSite(t, jsonRules("", jsonRule("r", "[]", 1, `"match": {"ip:address": "`+c.want+`"}`)))
		r := request()
		r.RemoteAddr = "[" + c.client + "]:80"
		if holds := len(s.Explain(r)) > 0; holds != c.holds {
			t.Errorf("%s of %s: %v", c.want, c.client, holds)
		}
	}
}

// A value that no request can have is an error, and so is the source of a cost.
func TestValuesThatNeverHold(t *testing.T) {
	for source, want := range map[string]string{
		"header:host": "is never there", "header:trailer": "is never there",
		"header:Transfer-Encoding": "is never there", "response:header:keep-alive": "is never there",
		"response:header:host": "", "header:keep-alive": "",
	} {
		_, err := ParsePolicyFor([]byte(reporting(source, "")))
		if (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), "algorithm_config.cost_source "+want) {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
	for key, values := range map[string][]string{
		"ip:address": {"/32", "localhost", "10.1.2.003", "10.0.0.0/33", "10.0.0.0/255.0.0.0",
			"10.0.0.*", "10.0.0.1-10.0.0.9", "10.0.0", "unknown", "0.0.0.0", "::",
			"0.0.0.0/32", "::/128", "::ffff:0.0.0.0/128", "::ffff:0:0/95", "64:ff9b::/96",
			"2002::/16", "2002:c000:200::/40", "fe80::1%eth0/64", "2001:db8::/129"},
		"header:host":              {"*.h.test", "https://h.test", "h.test/v1", "h test", "h,i"},
		"header:k":                 {" a", "a\t", "a\nb"},
		"header:accept":            {" text/html"},
		"header:authorization":     {"Bearer k\n"},
		"header:trailer":           {"a"},
		"header:Transfer-Encoding": {"chunked"},
	} {
		for _, v := range values {
			match := jsonRule("r", "[]", 1, sprintf(`"match": {%q: %q}`, key, v))
			path := string(policy.Path("match").Field(key))
			wantError(t, match, path)
			if key == "ip:address" || strings.HasPrefix(path, "match.header:t") {
				continue
			}
			tiers := sprintf(`"rps": 1, "burst": 1, "tiers": {"by": %q, "limits": {%q: {"rps": 1,
				"burst": 2}}}`, key, v)
			wantError(t, oneRule("[]", tiers), "algorithm_config.tiers")
		}
	}
	wantError(t, oneRule("[]", `"rps": 1, "burst": 1, "tiers": {"by": "header:host", "limits": {
		"h.test": {"rps": 1, "burst": 2}, "H.test:80": {"rps": 1, "burst": 3}}}`),
		"algorithm_config.tiers.limits")
	for name, values := range map[string][]string{
		"methods": {`["GET "]`, `["GET,POST"]`, `["GET POST"]`, `["\u00c9"]`, `["G:T"]`},
		"pathExact": {`"/a;b/c"`, `"/a?b=c"`, `"/a%20b"`, `"/a/..;b"`, `"/a\u0000"`, `"/a#b"`,
			`"/a;b\\c"`},
		"pathPrefix": {`"/a;b"`, `"/a;b/c"`, `"/a%2Fb/"`, `"/a/.;/"`},
	} {
		for _, v := range values {
			selector := sprintf(`"selector": {%q: %s}`, name, v)
			wantError(t, jsonRules(selector, jsonRule("r", "[]", 1, "")), "selector."+name)
		}
	}
	mustNew(t, jsonRules(`"selector": {"methods": ["get", "M-SEARCH"], "pathExact": "/a b%;c",
		"pathPrefix": "/\u00e9 b"}`, jsonRule("r", "[]", 1, `"match": {"header:k": "a\tb \u00e9"}`)))
}

// wantError wants an error with a path in a policy.
func wantError(t *testing.T, policy, path string) {
	t.Helper()
	if _, err := ParsePolicyFor([]byte(policy)); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%s: %v, want an error of %s", policy, err, path)
	}
}
