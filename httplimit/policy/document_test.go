package policy

import (
	"encoding/json"
	"math"
	"math/big"
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

// everyField is a document with all fields of a policy, and policy the same in Go.
const everyField = `{"jwt":"unverified","max_waiting":1048576,"except":[{"hosts":["x"],` +
	`"ip:address":["10.0.0.0/8"]},{"methods":["GET"],"pathPrefix":"/e/"}],"policies":[{"id":"a",` +
	`"spec":{"selector":{"hosts":["h","i"],"methods":["POST"],"pathExact":"/x",` +
	`"pathPrefix":"/y"},"evaluation":"first_match","mode":"shadow","rules":[{"name":"delays",` +
	`"limit_keys":["header:k","jwt:l"],"match":{"header:p":"gold","query:q":"1"},` +
	`"except":[{"pathExact":"/"}],"on_missing":"shared","mode":"shadow","on_limit":"delay",` +
	`"max_delay":"1.5s","algorithm_config":{"tokens_per_second":0.1,"burst":7,` +
	`"cost_source":"response:header:w","fixed_cost":1.5,"default_cost":2.5,"min_cost":3.5,` +
	`"max_cost":4.5}}],"fallback_limit":{"name":"f","limit_keys":[],` +
	`"on_missing":"reject","block":"1h0m0s","algorithm_config":{"tokens_per_second":1,"burst":1,` +
	`"cost_source":"response:status","status_costs":{"2xx":0,"401":1}}}}},{"id":"b",` +
	`"spec":{"evaluation":"all_match","rules":[{"name":"t","limit_keys":[],` +
	`"priority":{"by":"class","keep":{"*":0,"a":0.5}},"algorithm_config":{"tokens_per_second":1,` +
	`"burst":2,"tiers":{"by":"plan","limits":{"\u003cé":{"tokens_per_second":0.3333333333333333,` +
	`"burst":2}}}}},{"name":"m","limit_keys":[],"algorithm_config":{"tokens_per_second":1,` +
	`"burst":2,"adaptive":{"min":0.5,"max":2,"target_p99":"200ms"}}}]}}]}`

var everyFieldInGo = Policy{
	UnverifiedJWT: true, MaxWaiting: 1 << 20, Except: []Exception{
		{Selector: Selector{Hosts: []string{"x"}}, Networks: []string{"10.0.0.0/8"}},
		{Selector: Selector{Methods: []string{"GET"}, PathPrefix: "/e/"}},
	},
	Sets: []RuleSet{{
		Name: "a", path: "policies[0].spec", Evaluation: FirstMatch, Shadow: true,
		Selector: Selector{
			Hosts: []string{"h", "i"}, Methods: []string{"POST"}, PathExact: "/x", PathPrefix: "/y",
		},
		Rules: []Rule{{
			Name: "delays", Keys: []string{"header:k", "jwt:l"},
			Match:     map[string]string{"header:p": "gold", "query:q": "1"},
			Except:    []Exception{{Selector: Selector{PathExact: "/"}}},
			OnMissing: Shared, Shadow: true, OnLimit: Delay, MaxDelay: 1500 * time.Millisecond,
			Limit: tb.Limit{Capacity: 7, Tokens: 1, Per: 10 * time.Second},
			Cost: Cost{
				Source: "response:header:w", Fixed: 1.5, Default: 2.5, Min: 3.5, Max: 4.5,
			},
		}},
		Fallback: &Rule{
			Name: "f", OnMissing: Reject, Block: time.Hour,
			Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: time.Second},
			Cost: Cost{
				Source: "response:status", Statuses: map[string]float64{"2xx": 0, "401": 1},
			},
		},
	}, {
		Name: "b", path: "policies[1].spec", Evaluation: AllMatch,
		Rules: []Rule{{
			Name: "t", Priority: Priority{By: "class", Keep: map[string]float64{"*": 0, "a": 0.5}},
			Limit: tb.Limit{Capacity: 2, Tokens: 1, Per: time.Second},
			Tiers: Tiers{By: "plan", Limits: map[string]tb.Limit{
				"<é": {Capacity: 2, Tokens: 1, Per: 3 * time.Second},
			}},
		}, {
			Name: "m", Limit: tb.Limit{Capacity: 2, Tokens: 1, Per: time.Second},
			Adaptive: Adaptive{Min: 0.5, Max: 2, TargetP99: 200 * time.Millisecond},
		}},
	}},
}

// A document and a policy have the same fields, by the same names.
func TestEveryField(t *testing.T) {
	read := mustParse(t, everyField)
	if !reflect.DeepEqual(*read, everyFieldInGo) {
		t.Errorf("read  %+v\nwant %+v", *read, everyFieldInGo)
	}
	if text := roundTrip(t, &everyFieldInGo); text != everyField {
		t.Errorf("written %s\nwant    %s", text, everyField)
	}
}

// What only a document has is read, and not written.
func TestFieldsOfDocumentsOnly(t *testing.T) {
	rule := jsonRule("r", `["ip:address"]`, 3, `"match": {"a": 1.50, "b": true}, "on_missing": "skip"`)
	bundle := sprintf(`{"bundle_version": 7, "issued_at": "2026-01-01T00:00:00Z",
		"expires_at": "2030-01-01T00:00:00Z", "kill_switches": [], "jwt": "context", "policies": [
		{"id": "a", "spec": {"evaluation": "ladders", "rules": [], "fallback_limit": %s}}]}`,
		strings.Replace(rule, `"name": "r", `, "", 1))
	const rules = `{"rules":[{"name":"r"`
	for document, begin := range map[string]string{
		rule: rules, jsonRules("", rule): rules, "\ufeff" + rule: rules,
		bundle: `{"policies":[{"id":"a","spec":{"rules":[],"fallback_limit":{"name":"fallback_limit"`,
	} {
		want := begin + `,"limit_keys":["ip:address"],"match":{"a":"1.50","b":"true"},` +
			`"algorithm_config":{"tokens_per_second":1,"burst":3}}`
		if got := roundTrip(t, mustParse(t, document)); !strings.HasPrefix(got, want) {
			t.Errorf("%s\n%s, want %s", document, got, want)
		}
	}
}

// roundTrip returns the document of p, and requires that Parse makes p of it.
func roundTrip(t *testing.T, p *Policy) string {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var got Policy
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	if value, err := json.Marshal(got); err != nil || string(value) != string(data) {
		t.Errorf("%s, %v; want %s", value, err, data)
	}
	return string(data)
}

// A policy that has no document is an error, and so is a document that is not valid.
func TestMarshalPolicyThatIsNotValid(t *testing.T) {
	limit := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}
	data, err := json.Marshal(Rules(Rule{Name: "r", Cost: Cost{Fixed: math.NaN()}}))
	if err == nil {
		t.Errorf("%s has a cost that is not a number", data)
	}
	data, err = json.Marshal(Rules(Rule{Name: "r", OnMissing: 3, Tiers: Tiers{By: "plan"}}))
	if err != nil || !strings.Contains(string(data), `"tiers":{"by":"plan","limits":{}}`) ||
		!strings.Contains(string(data), `"on_missing":3`) {
		t.Errorf("%s, %v", data, err)
	}
	old := Rules(Rule{Name: "r", Limit: limit})
	err = json.Unmarshal([]byte(`{"rules": []}`), old)
	if err == nil || old.Sets[0].Rules[0].Name != "r" {
		t.Errorf("%v, %+v: want an error, and the policy as before", err, old)
	}
}

// A rate that no document has is written as one that is nearly the same.
func TestMarshalPolicyWithAnyFraction(t *testing.T) {
	l := tb.Limit{Capacity: 1, Tokens: 1<<62 + 1, Per: 1<<63 - 1}
	data, err := json.Marshal(Rules(Rule{Name: "r", Limit: l, OnLimit: Delay, MaxDelay: 1}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := perSecond(p.Sets[0].Rules[0].Limit).Float64()
	if want, _ := perSecond(l).Float64(); got != want {
		t.Errorf("%v tokens a second, want %v", got, want)
	}
}

// A document has no defaults, and as few digits of a rate as are needed.
func TestMarshalPolicyAsText(t *testing.T) {
	for want, l := range map[string]tb.Limit{
		"2":                           {Tokens: 2, Per: time.Second},
		"0.123456789":                 {Tokens: 123456789, Per: 1e18},
		"0.3333333333333333":          {Tokens: 1, Per: 3 * time.Second},
		"10000000.333333333333333333": {Tokens: 30000001, Per: 3 * time.Second},
	} {
		l.Capacity = tb.MaxCapacity
		want = `{"rules":[{"name":"r","limit_keys":[],"algorithm_config":{"tokens_per_second":` + want +
			`,"burst":1073741824}}]}`
		if got := roundTrip(t, Rules(Rule{Name: "r", Limit: l})); got != want {
			t.Errorf("%s, want %s", got, want)
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

func perSecond(l tb.Limit) *big.Rat {
	x := big.NewRat(l.Tokens, int64(l.Per))
	return x.Mul(x, big.NewRat(int64(time.Second), 1))
}

func TestMalformedJSON(t *testing.T) {
	for policy, want := range map[string]string{
		"":                                "line 1: unexpected end of JSON input",
		"{":                               "line 1: unexpected end of JSON input",
		"[]":                              "must be an object (got an array)",
		"{}\n{}":                          "line 2: invalid character '{' after top-level value",
		"{\n}\n garbage":                  "line 3: invalid character 'g'",
		"{}}":                             "line 1: invalid character '}'",
		"{\"a\": 1,}":                     "line 1: invalid character '}'",
		"{\"a\":\n\n01}":                  "line 3: invalid character '1'",
		"{\n\n\"name\" 1}":                "line 3: invalid character '1'",
		"{\"name\": \"\xff\"}":            "not valid UTF-8",
		"\ufeff\ufeff{}":                  "line 1: invalid character",
		strings.Repeat(`{"a":`, 1_000_00): "line 1: ", // too deep
	} {
		_, err := Parse([]byte(policy))
		if err == nil || !strings.HasPrefix(err.Error(), "httplimit: policy: "+want) {
			t.Errorf("%.20q: %v, want %s", policy, err, want)
		}
	}
}

// FuzzParse parses any document. A policy that is accepted has a document, of which Parse makes the
// same policy.
func FuzzParse(f *testing.F) {
	for _, policy := range fairvisorExamples {
		f.Add([]byte(policy))
	}
	f.Add([]byte(everyField))
	f.Add([]byte(`{"rules": [{"rules": 1e9999}, null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse(data)
		switch {
		case err == nil:
			roundTrip(t, p)
		case p != nil || !strings.HasPrefix(err.Error(), "httplimit: "):
			t.Fatalf("%v %v", p, err)
		}
	})
}
