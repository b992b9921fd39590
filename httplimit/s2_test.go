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
	p, err := LoadPolicy(strings.NewReader(jsonRule("r", `[]`, 1, "")))
	if err != nil || p.Sets[0].Rules[0].Name != "r" {
		t.Fatal(p, err)
	}
	broken := errors.New("broken")
	if _, err := LoadPolicy(iotest.ErrReader(broken)); !errors.Is(err, broken) {
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
		{"12345.000000001", 12345000000001, 1e9 * time.Second},
		// More decimals than a Limit can hold.
		{"0.3333333333333333", 1, 3 * time.Second},
		{"16.666666666666668", 50, 3 * time.Second},
		{"0.016666666666666666", 1, time.Minute},
		{"0.33333333333333331482961625624739", 1, 3 * time.Second},
		{"0.0000115740740740740740", 1, 24 * time.Hour},
		{"1e9", 1e9, time.Second},
		{"1000000000.1", 0, 0},
		{"1073741824", 0, 0},
		{"1e-10", 0, 0},
		{"0.0000000005", 1, 2e9 * time.Second},
	} {
		p, err := ParsePolicy([]byte(oneRule("[]", `"burst": 1073741824, "rps": `+c.rps)))
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
	mustParse(t, oneRule("[]", `"rps": 1, "burst": 5, "min_cost": 2, "max_cost": 2`))
	mustParse(t, oneRule("[]", `"rps": 1, "burst": 5, "fixed_cost": 1e17`))
}

func TestS2TokensPerSecondWinsOverRPS(t *testing.T) {
	p, err := ParsePolicy([]byte(oneRule("[]",
		`"rps": 3, "tokens_per_second": 2, "burst": 9`)))
	if err != nil || p.Sets[0].Rules[0].Limit.Tokens != 2 {
		t.Fatal(p, err)
	}
	w := p.Warnings()
	if len(w) != 1 || !strings.HasPrefix(w[0], "algorithm_config.rps is ignored") {
		t.Errorf("%q", w)
	}
}

func TestS2Warnings(t *testing.T) {
	for _, c := range []struct{ policy, want string }{
		{oneRule("[]", `"rps": 1, "burst": 2, "fixed_cost": 2`), ""},
		{oneRule("[]", `"rps": 1, "burst": 2, "fixed_cost": 2.5`),
			"algorithm_config.fixed_cost is above burst"},
		{oneRule("[]", `"rps": 1, "burst": 2, "cost_source": "header:w"`),
			"algorithm_config.cost_source lets clients"},
		{oneRule("[]", `"rps": 1, "burst": 2, "cost_source": "query:w", "min_cost": 1`),
			"algorithm_config.cost_source lets clients"},
		{oneRule("[]",
			`"rps": 1, "burst": 2, "cost_source": "query:w", "min_cost": 1, "max_cost": 2`), ""},
		{jsonRules(`"jwt": "unverified"`), "jwt is unverified: without a check of the signature"},
		{jsonRules(`"jwt": "context"`), ""},
		{jsonRules(`"fallback_limit": `+jsonRule("f", "[]", 1, ""), jsonRule("a", "[]", 1, "")),
			"fallback_limit never applies"},
		{jsonRules(`"fallback_limit": `+jsonRule("f", "[]", 1, ""), jsonRule("a", "[]", 1,
			`"mode": "shadow"`)), ""},
		{jsonRules(`"fallback_limit": `+jsonRule("f", "[]", 1, ""), jsonRule("a", "[]", 1,
			`"match": {"query:a": 1}`)), ""},
		{`{"policies": [], "expires_at": "2026-01-01T00:00:00Z"}`, "expires_at is not enforced"},
	} {
		p := mustParse(t, c.policy)
		warnings := p.Warnings()
		got := strings.Join(warnings, "\n")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got,
			c.want) || len(warnings) > 1 {
			t.Errorf("%s\n%q, want %q", c.policy, got, c.want)
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
	_, err := New(p, WithClientAddress(ClientAddress{IPv6Bits: 129}), WithLimiterOptions(tb.WithMaxKeys(0)))
	for _, want := range []string{
		`sets[0].rules[0].on_missing is 9`,
		`sets[0].rules[0].limit is not valid: tb: Capacity is 0, want 1 to 1073741824`,
		`sets[1].id must be printable ASCII (got "a\n")`,
		`sets[1].evaluation is 7`,
		`sets[1].fallback_limit.algorithm_config.fixed_cost must be > 0`,
		`sets[1].fallback_limit.limit_keys[0] has no extractor (got "ip:asn")`,
		`client address: want 1 to 32 and 1 to 128 bits, got 32 and 129`,
		`tb: WithMaxKeys is 0`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}
