package httplimit

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Section 2: the policy file. The tests are named after the sections of the specification,
// which the documentation of policies follows.

func TestS2AcceptsOneRuleRulesAndBundles(t *testing.T) {
	rule := jsonRule("r", `["ip:address"]`, 3, "")
	bundle := sprintf(`{"bundle_version": 7, "issued_at": "2026-01-01T00:00:00Z",
		"expires_at": "2030-01-01T00:00:00Z", "kill_switches": [], "policies": [
		{"id": "a", "spec": {"selector": {"pathPrefix": "/a", "methods": ["GET"], "hosts": ["x"]},
			"mode": "shadow", "rules": [%s], "fallback_limit": %s}},
		{"id": "b", "spec": {"selector": {"pathExact": "/b"}, "rules": []}}]}`,
		rule, strings.Replace(rule, `"name": "r", `, "", 1))
	want := Rule{Name: "r", Keys: []string{"ip:address"}, Limit: tb.Limit{Capacity: 3, Tokens: 1,
		Per: time.Second}}
	fallback := want
	fallback.Name = "fallback_limit"
	alone := want
	alone.alone = true
	for _, c := range []struct {
		name, policy string
		want         []RuleSet
	}{
		{"rule", rule, []RuleSet{{Rules: []Rule{alone}}}},
		{"rules", jsonRules("", rule, strings.Replace(rule, `"r"`, `"s"`, 1)), []RuleSet{{
			Rules: []Rule{want, func() Rule { s := want; s.Name = "s"; return s }()}}}},
		{"bundle", bundle, []RuleSet{
			{Name: "a", Shadow: true, Rules: []Rule{want}, Fallback: &fallback,
				path: "policies[0].spec",
				Selector: Selector{Hosts: []string{"x"}, Methods: []string{"GET"},
					PathPrefix: "/a"}},
			{Name: "b", Selector: Selector{PathExact: "/b"}, path: "policies[1].spec"},
		}},
	} {
		if got := mustParse(t, c.policy); !reflect.DeepEqual(got.Sets, c.want) {
			t.Errorf("%s: %+v\nwant %+v", c.name, got.Sets, c.want)
		}
	}
}

func TestS2LoadPolicyReads(t *testing.T) {
	p, _, err := LoadPolicy(strings.NewReader(jsonRule("r", `[]`, 1, "")))
	if err != nil || p.Sets[0].Rules[0].Name != "r" {
		t.Fatal(p, err)
	}
	broken := errors.New("broken")
	if _, _, err := LoadPolicy(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Fatal(err)
	}
}

func TestS2NumbersAreExactDecimals(t *testing.T) {
	for _, c := range []struct {
		rps    string
		tokens int64
		per    time.Duration
	}{
		{"0.1", 1, 10 * time.Second},
		{"100", 100, time.Second},
		{"1e2", 100, time.Second},
		{"2.5", 5, 2 * time.Second},
		{"33.333", 33333, 1000 * time.Second},
		{"0.000000001", 1, 1e9 * time.Second},
		{"0.30000000000000004", 0, 0}, // cannot be kept exactly
		{"1e9", 1e9, time.Second},
		{"1000000000.1", 0, 0},
		{"1e-10", 0, 0},
		{"0.0000000005", 1, 2e9 * time.Second},
	} {
		p, _, err := ParsePolicy([]byte(oneRule("[]", `"burst": 1073741824, "rps": `+c.rps)))
		if c.tokens == 0 {
			if err == nil || !strings.Contains(err.Error(),
				"1 token in 292 years to 1e9 a second") {
				t.Errorf("%s: %v", c.rps, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.rps, err)
		} else if got := p.Sets[0].Rules[0].Limit; got.Tokens != c.tokens || got.Per != c.per {
			t.Errorf("%s: %+v, want %d per %v", c.rps, got, c.tokens, c.per)
		}
	}
}

func TestS2CostsMayBeFractions(t *testing.T) {
	p := mustParse(t, oneRule("[]", `"rps": 1, "burst": 5, "fixed_cost": 2.5, "default_cost": 0.5,
		"min_cost": 0.1, "max_cost": 3, "cost_source": "query:n"`))
	want := Cost{Source: "query:n", Fixed: 2.5, Default: 0.5, Min: 0.1, Max: 3}
	if got := p.Sets[0].Rules[0].Cost; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestS2TokensPerSecondWinsOverRPS(t *testing.T) {
	p, warnings, err := ParsePolicy([]byte(oneRule("[]",
		`"rps": 3, "tokens_per_second": 2, "burst": 9`)))
	if err != nil || p.Sets[0].Rules[0].Limit.Tokens != 2 {
		t.Fatal(p, err)
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "algorithm_config.rps: ") {
		t.Errorf("%q", warnings)
	}
}

// Each line of a case is an error, in this order, and there are no others.
func TestS2EveryErrorHasItsPath(t *testing.T) {
	ok := jsonRule("ok", "[]", 1, "")
	bad := func(config string) string { return oneRule("[]", config) }
	for _, c := range []struct{ policy, want string }{
		{bad(`"rps": 10, "burst": 5`),
			`algorithm_config.burst: must be >= tokens_per_second (got 5, want >= 10)`},
		{bad(`"rps": 0.5, "burst": 2.5`),
			`algorithm_config.burst: must be a whole number of tokens (got 2.5)`},
		{bad(`"rps": 1, "burst": 1073741825`),
			`algorithm_config.burst: must be at most 1073741824 (got 1073741825)`},
		{bad(`"rps": 1`), `algorithm_config.burst: is missing`},
		{bad(`"burst": 1`),
			`algorithm_config.tokens_per_second: is missing, and so is its alias rps`},
		{bad(`"rps": 0, "burst": 1`), `algorithm_config.rps: must be > 0 (got 0)`},
		{bad(`"rps": -1, "burst": -1`), "algorithm_config.rps: must be > 0 (got -1)\n" +
			"algorithm_config.burst: must be > 0 (got -1)"},
		{bad(`"rps": "1", "burst": null`),
			"algorithm_config.rps: must be a number (got a string)\n" +
				"algorithm_config.burst: must be a number (got null)"},
		{bad(`"rps": 1e999999999, "burst": 1`),
			`algorithm_config.rps: has too many digits (got 1e999999999)`},
		{bad(`"rps": 1, "burst": 1` + strings.Repeat("0", 40)),
			`algorithm_config.burst: has too many digits (got 1` + strings.Repeat("0", 40) + `)`},
		{bad(`"rps": 1, "burst": 1, "fixed_cost": 0`),
			`algorithm_config.fixed_cost: must be > 0 (got 0)`},
		{bad(`"rps": 1, "burst": 1, "default_cost": -2`),
			`algorithm_config.default_cost: must be > 0 (got -2)`},
		{bad(`"rps": 1, "burst": 1, "max_cost": 1e20`),
			`algorithm_config.max_cost: must be > 0 and at most 1e+17 (got 1e+20)`},
		{bad(`"rps": 1, "burst": 1, "min_cost": 3, "max_cost": 2`),
			`algorithm_config.min_cost: must be <= max_cost (got 3, want <= 2)`},
		{bad(`"rps": 1, "burst": 1, "cost_source": "header:a b"`),
			`algorithm_config.cost_source: must be ` +
				`fixed, header:<name> or query:<name>, with a name of A-Z a-z 0-9 _ - (got "header:a b")`},
		{bad(`"rps": 1, "burst": 1, "cost_source": "cookie:x"`),
			`algorithm_config.cost_source: must be ` +
				`fixed, header:<name> or query:<name>, with a name of A-Z a-z 0-9 _ - (got "cookie:x")`},
		{bad(`"rps": 1, "burst": 1, "brust": 1`), `algorithm_config.brust: unknown field`},
		{bad(`"rps": 1, "burst": 1, "burst": 2`),
			`algorithm_config.burst: is there more than once`},
		{jsonRules("", ok, jsonRule("", `["header:", 1]`, 1, `"x": 1`), jsonRule("ok",
			`["ip:address", "ip:address"]`, 1, "")),
			"rules[1].limit_keys[1]: must be a string (got a number)\n" +
				"rules[1].x: unknown field\n" +
				"rules[1].name: must not be empty\n" +
				"rules[2].name: must be unique (got \"ok\" again)\n" +
				"rules[2].limit_keys[1]: must be unique (got \"ip:address\" again)"},
		{jsonRules("", jsonRule("a", `["jwt:a.b", "", "t\u00e4g"]`, 1, "")),
			"rules[0].limit_keys[0]: must be jwt: and a name of A-Z a-z 0-9 _ - (got \"jwt:a.b\")\n" +
				"rules[0].limit_keys[1]: must be printable ASCII and not empty (got \"\")\n" +
				"rules[0].limit_keys[2]: must be printable ASCII and not empty (got \"täg\")"},
		{jsonRules("", jsonRule("a", `[]`, 1,
			`"match": {"header:x": "", "query:": "1", "jwt:a": []}`)),
			"rules[0].match[\"jwt:a\"]: must be a string, number or boolean (got an array)\n" +
				"rules[0].match[\"header:x\"]: must not be empty, for an empty value counts as missing\n" +
				"rules[0].match[\"query:\"]: must be query: and a name of A-Z a-z 0-9 _ - (got \"query:\")"},
		{jsonRules("", jsonRule("a", `[]`, 1, `"on_missing": "skipp", "mode": "off"`)),
			"rules[0].on_missing: must be skip or reject or shared (got \"skipp\")\n" +
				"rules[0].mode: must be enforce or shadow (got \"off\")"},
		{jsonRules(`"evaluation": "any", "jwt": 1, "y": {}`),
			"jwt: must be a string (got a number)\n" +
				"evaluation: must be ladders or all_match or first_match (got \"any\")\ny: unknown field"},
		{`{"rules": [1]}`, "rules[0]: must be an object (got a number)"},
		{`{"rules": {}}`, "rules: must be an array (got an object)"},
		{`{"name": "a", "algorithm": "leaky"}`,
			"limit_keys: is missing ([] means one bucket for everybody)\n" +
				"algorithm: must be token_bucket (got \"leaky\")\nalgorithm_config: is missing"},
		{jsonRules(`"selector": {"pathPrefix": "v1", "methods": [""], "hosts": [""], "path": 1}`),
			"selector.path: unknown field\nselector.pathPrefix: must start with / (got \"v1\")\n" +
				"selector.hosts[0]: must not be empty\nselector.methods[0]: must not be empty"},
		{jsonRules(`"fallback_limit": {"limit_keys": []}`),
			"fallback_limit.algorithm_config: is missing"},
		{sprintf(`{"expires_at": "soon", "kill_switches": [{}], "global_shadow": {}, "policies": [
			{"id": "a", "spec": {"rules": [], "loop_detection": {}}},
			{"id": "a", "spec": {"rules": [%s]}}, {"id": ""}]}`, bad(`"rps": 9, "burst": 1`)),
			"expires_at: must be a time such as 2026-01-31T00:00:00Z (got \"soon\")\n" +
				"kill_switches: are not supported\n" +
				"policies[0].spec.loop_detection: unknown field\n" +
				"policies[1].spec.rules[0].algorithm_config.burst: must be >= " +
				"tokens_per_second (got 1, want >= 9)\n" +
				"policies[2].spec: is missing\npolicies[2].spec.rules: is missing\n" +
				"global_shadow: unknown field\n" +
				"policies[1].id: must be unique (got \"a\" again)\npolicies[2].id: must not be empty"},
	} {
		p, _, err := ParsePolicy([]byte(c.policy))
		if want := "httplimit: policy:\n" + c.want; p != nil || err == nil || err.Error() != want {
			t.Errorf("%s\n%v\nwant\n%s", c.policy, err, want)
		}
	}
}

func TestS2WhatIsNoJSONIsRefused(t *testing.T) {
	for policy, want := range map[string]string{
		"":                                "line 1: unexpected EOF",
		"{":                               "line 1: unexpected EOF",
		"[]":                              "must be an object (got an array)",
		"{}\n{}":                          "line 2: more than one JSON value",
		"{\n\n\"name\" 1}":                "line 3: invalid character '1' after object key",
		"{\"name\": \"\xff\"}":            "not valid UTF-8",
		strings.Repeat(`{"a":`, 1_000_00): "line 1: nested more than 16 deep",
	} {
		_, _, err := ParsePolicy([]byte(policy))
		if err == nil || err.Error() != "httplimit: policy: "+want {
			t.Errorf("%.20q: %v, want %s", policy, err, want)
		}
	}
}

func TestS2Warnings(t *testing.T) {
	for _, c := range []struct{ policy, want string }{
		{oneRule("[]", `"rps": 1, "burst": 2, "fixed_cost": 2`), ""},
		{oneRule("[]", `"rps": 1, "burst": 2, "fixed_cost": 2.5`),
			"algorithm_config.fixed_cost: is above burst"},
		{oneRule("[]", `"rps": 1, "burst": 2, "cost_source": "header:w"`),
			"algorithm_config.cost_source: clients"},
		{oneRule("[]", `"rps": 1, "burst": 2, "cost_source": "query:w", "min_cost": 1`),
			"algorithm_config.cost_source: clients"},
		{oneRule("[]",
			`"rps": 1, "burst": 2, "cost_source": "query:w", "min_cost": 1, "max_cost": 2`), ""},
		{jsonRules(`"jwt": "unverified"`), "jwt: without a check of the signature"},
		{jsonRules(`"jwt": "context"`), ""},
		{jsonRules(`"fallback_limit": `+jsonRule("f", "[]", 1, ""), jsonRule("a", "[]", 1, "")),
			"fallback_limit: never applies"},
		{jsonRules(`"fallback_limit": `+jsonRule("f", "[]", 1, ""), jsonRule("a", "[]", 1,
			`"match": {"query:a": 1}`)), ""},
		{`{"policies": [], "expires_at": "2026-01-01T00:00:00Z"}`, "expires_at: is not enforced"},
	} {
		_, warnings, err := ParsePolicy([]byte(c.policy))
		got := strings.Join(warnings, "\n")
		if err != nil || (got == "") != (c.want == "") || !strings.HasPrefix(got,
			c.want) || len(warnings) > 1 {
			t.Errorf("%s\n%q %v, want %q", c.policy, got, err, c.want)
		}
	}
}

func TestS2RuleNamesArePrintableASCII(t *testing.T) {
	for name, ok := range map[string]bool{
		`per "org" \ x`: true, "~": true, "a\tb": false, "ü": false, "\x7f": false,
	} {
		_, err := New(Rules(Rule{Name: name, Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: 1}}))
		if (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestS2PoliciesBuiltInGoAreChecked(t *testing.T) {
	p := &Policy{Sets: []RuleSet{
		{Name: "a", Rules: []Rule{{Name: "x", OnMissing: 9}}},
		{Name: "a\n", Evaluation: 7, Fallback: &Rule{Name: "y", Keys: []string{"ip:asn"},
			Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: 1}, Cost: Cost{Fixed: -1}}},
	}}
	_, err := New(p, WithClientAddress(ClientAddress{IPv6Bits: 129}), WithCore(tb.WithMaxKeys(0)))
	for _, want := range []string{
		`sets[0].rules[0].on_missing: is 9`,
		`sets[0].rules[0]: tb: Capacity is 0, want 1 to 1073741824`,
		`sets[1].id: must be printable ASCII (got "a\n")`,
		`sets[1].evaluation: is 7`,
		`sets[1].fallback_limit.algorithm_config.fixed_cost: must be > 0`,
		`sets[1].fallback_limit.limit_keys[0]: there is no extractor for "ip:asn"`,
		`client address: want 1 to 32 and 1 to 128 bits, got 32 and 129`,
		`tb: WithMaxKeys is 0`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}
