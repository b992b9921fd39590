package policy

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// fairvisorExamples are of the page from which the format of policies comes:
// https://docs.fairvisor.com/docs/algorithms/token-bucket
var fairvisorExamples = []string{
	`{"name": "global-rps", "limit_keys": ["ip:address"], "algorithm": "token_bucket",
		"algorithm_config": {"rps": 5, "burst": 10}}`,
	`{"rules": [
		{"name": "enterprise", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket",
			"algorithm_config": {"rps": 1000, "burst": 2000}, "match": {"jwt:plan": "enterprise"}},
		{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket",
			"algorithm_config": {"rps": 10, "burst": 20}}]}`,
}

func TestParseAcceptsOneRuleRulesAndBundles(t *testing.T) {
	rule := jsonRule("r", `["ip:address"]`, 3, "")
	bundle := sprintf(`{"bundle_version": 7, "issued_at": "2026-01-01T00:00:00Z",
		"expires_at": "2030-01-01T00:00:00Z", "kill_switches": [], "policies": [
		{"id": "a", "spec": {"selector": {"pathPrefix": "/a", "methods": ["GET"], "hosts": ["x"]},
			"mode": "shadow", "rules": [%[1]s], "fallback_limit": %[2]s}},
		{"id": "b", "spec": {"selector": {"pathExact": "/b"}, "rules": [%[1]s]}}]}`,
		rule, strings.Replace(rule, `"name": "r", `, "", 1))
	want := Rule{Name: "r", Keys: []string{"ip:address"}, Limit: tb.Limit{
		Capacity: 3, Tokens: 1,
		Per: time.Second,
	}}
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
			Rules: []Rule{want, func() Rule { s := want; s.Name = "s"; return s }()},
		}}},
		{"bundle", bundle, []RuleSet{
			{
				Name: "a", Shadow: true, Rules: []Rule{want}, Fallback: &fallback,
				path: "policies[0].spec",
				Selector: Selector{
					Hosts: []string{"x"}, Methods: []string{"GET"},
					PathPrefix: "/a",
				},
			},
			{
				Name: "b", Selector: Selector{PathExact: "/b"}, path: "policies[1].spec",
				Rules: []Rule{want},
			},
		}},
	} {
		if got := mustParse(t, c.policy); !reflect.DeepEqual(got.Sets, c.want) {
			t.Errorf("%s: %+v\nwant %+v", c.name, got.Sets, c.want)
		}
	}
}

func TestRatesAreExactDecimals(t *testing.T) {
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
		p, err := Parse([]byte(oneRule("[]", `"burst": 1073741824, "rps": `+c.rps)))
		if c.tokens == 0 {
			if err == nil || !strings.Contains(err.Error(),
				"from 1 token in 292 years to 1e9 tokens a second") {
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
