package policy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Each line of a case is an error. There are no other errors, and the order is the same.
func TestEveryErrorHasItsPath(t *testing.T) {
	ok := jsonRule("ok", "[]", 1, "")
	const wantSource = `algorithm_config.cost_source must be fixed, header:<name>, query:<name>, ` +
		`response:header:<name>, response:bytes, response:status or response:usage, ` +
		`with a name of A-Z a-z 0-9 _ - `
	bad := func(config string) string { return oneRule("[]", config) }
	tiers := func(tiers string) string { return bad(`"rps": 1, "burst": 10, "tiers": ` + tiers) }
	adaptive := func(fields string) string {
		return bad(`"rps": 100, "burst": 10, "adaptive": {` + fields + `}`)
	}
	for _, c := range []struct{ policy, want string }{
		{bad(`"rps": 10, "burst": 5`),
			`algorithm_config.burst must be >= tokens_per_second (got 5, want >= 10)`},
		{
			bad(`"rps": 10, "burst": 2.5`),
			"algorithm_config.burst must be a whole number of tokens (got 2.5)\n" +
				"algorithm_config.burst must be >= tokens_per_second (got 2.5, want >= 10)",
		},
		{
			bad(`"rps": 1e-41, "burst": 1e-40`),
			"algorithm_config.rps has too many digits (got 1e-41)\n" +
				"algorithm_config.burst must be a whole number of tokens (got 1e-40)",
		},
		{
			bad(`"rps": 1e400, "burst": 1e400`),
			"algorithm_config.rps has too many digits (got 1e400)\n" +
				"algorithm_config.burst has too many digits (got 1e400)",
		},
		{bad(`"rps": 1, "burst": 1073741825`),
			`algorithm_config.burst must be at most 1073741824 (got 1073741825)`},
		{bad(`"rps": 1`), `algorithm_config.burst is missing`},
		{bad(`"burst": 1`), `algorithm_config.tokens_per_second is missing, and so is its alias rps`},
		{bad(`"rps": -1, "burst": -1`), "algorithm_config.rps must be > 0 (got -1)\n" +
			"algorithm_config.burst must be > 0 (got -1)"},
		{bad(`"tokens_per_second": 1, "rps": 0, "burst": 1`),
			`algorithm_config.rps must be > 0 (got 0)`},
		{
			bad(`"rps": "1", "burst": null`),
			"algorithm_config.rps must be a number (got a string)\n" +
				"algorithm_config.burst must be a number (got null)",
		},
		{bad(`"rps": 1e999999999, "burst": 1`),
			`algorithm_config.rps has too many digits (got 1e999999999)`},
		{bad(`"rps": 1, "burst": 1` + strings.Repeat("0", 40)),
			`algorithm_config.burst has too many digits (got 1` + strings.Repeat("0", 40) + `)`},
		{bad(`"rps": 1, "burst": 1, "fixed_cost": 0`),
			`algorithm_config.fixed_cost must be > 0 (got 0)`},
		{bad(`"rps": 1, "burst": 1, "fixed_cost": 10e-41`),
			`algorithm_config.fixed_cost has too many digits (got 10e-41)`},
		{bad(`"rps": 1, "burst": 1, "max_cost": 1e40`),
			`algorithm_config.max_cost must be 1e-40 to 1e+17 (got 1e+40)`},
		{bad(`"rps": 1, "burst": 1, "min_cost": 3, "max_cost": 2`),
			`algorithm_config.min_cost must be <= max_cost (got 3, want <= 2)`},
		{bad(`"rps": 1, "burst": 1, "cost_source": ""`), wantSource + `(got "")`},
		{bad(`"rps": 1, "burst": 1, "cost_source": "cookie:x"`), wantSource + `(got "cookie:x")`},
		{bad(`"rps": 1, "burst": 1, "cost_source": "response:header:"`),
			wantSource + `(got "response:header:")`},
		{bad(`"rps": 1, "burst": 1, "cost_source": "response:status", "max_cost": 1`),
			"algorithm_config.status_costs is missing, because cost_source is response:status"},
		{
			bad(`"rps": 1, "burst": 1, "cost_source": "response:status", "max_cost": 1,
				"status_costs": {"401": 0, "2xx": 1e17, "OK": 0.5, "Ok": 1, "500": -1, "4xx": "1",
				"3xx": 1e18}`),
			"algorithm_config.status_costs.500 must be >= 0 (got -1)\n" +
				"algorithm_config.status_costs.4xx must be a number (got a string)\n" +
				"algorithm_config.cost_source has no min_cost and no max_cost if it is response:status\n" +
				"algorithm_config.status_costs.3xx must be 1e-40 to 1e+17 (got 1e+18)\n" +
				"algorithm_config.status_costs.Ok must be a status such as 401, a class such as 4xx, or a " +
				"code of gRPC such as UNAUTHENTICATED",
		},
		{bad(`"rps": 1, "burst": 1, "cost_source": "response:bytes", "status_costs": {"401": 1}`),
			"algorithm_config.status_costs has no effect without a cost_source of response:status"},
		{bad(`"rps": 1, "burst": 1, "brust": 1`), `algorithm_config.brust is an unknown field`},
		{bad(`"rps": 1, "burst": 1, "burst": 2, "brust": 1`),
			"algorithm_config.burst is there more than once\nalgorithm_config.brust is an unknown field"},
		{
			jsonRules("", ok, jsonRule("", `["header:", 1, 2]`, 1, `"x": 1`), jsonRule("ok",
				`["ip:address", "ip:address"]`, 1, "")),
			"rules[1].limit_keys[1] must be a string (got a number)\n" +
				"rules[1].limit_keys[2] must be a string (got a number)\n" +
				"rules[1].x is an unknown field\n" +
				"rules[1].name must not be empty\n" +
				"rules[1].limit_keys[0] must be header:<name>, with a name of A-Z a-z 0-9 _ - " +
				"(got \"header:\")\n" +
				"rules[2].name must be unique (got \"ok\" again)\n" +
				"rules[2].limit_keys[1] must be unique (got \"ip:address\" again)",
		},
		{
			jsonRules("", jsonRule("a", `["jwt:a.b", "", "t\u00e4g", "cookie:a.b", "cookie:a=b"]`, 1, "")),
			"rules[0].limit_keys[0] must be jwt:<name>, with a name of A-Z a-z 0-9 _ - (got \"jwt:a.b\")\n" +
				"rules[0].limit_keys[1] must be printable ASCII and not empty (got \"\")\n" +
				"rules[0].limit_keys[2] must be printable ASCII and not empty (got \"täg\")\n" +
				"rules[0].limit_keys[4] must be cookie:<name>, with a name of A-Z a-z 0-9 _ - . " +
				"(got \"cookie:a=b\")",
		},
		{
			jsonRules("", jsonRule("a", `[]`, 1,
				`"match": {"header:x": "", "query:": "1", "jwt:a": []}`)),
			"rules[0].match[\"jwt:a\"] must be a string, number or boolean (got an array)\n" +
				"rules[0].match[\"header:x\"] must not be empty, because an empty value counts as missing\n" +
				"rules[0].match[\"query:\"] must be query:<name>, with a name of A-Z a-z 0-9 _ - " +
				"(got \"query:\")",
		},
		{
			jsonRules("", jsonRule("a", `["header:k", "header:K", "query:k", "query:K"]`, 1,
				`"match": {"header:X": "1", "header:x": "2", "jwt:x": 1, "jwt:X": 1}`)),
			"rules[0].limit_keys[1] must be unique (got \"header:K\" again)\n" +
				"rules[0].match[\"header:x\"] must be unique (got \"header:x\" again)",
		},
		{
			jsonRules("", jsonRule("a", `[]`, 1, `"on_missing": "skipp", "mode": "off"`)),
			"rules[0].on_missing must be skip or reject or shared (got \"skipp\")\n" +
				"rules[0].mode must be enforce or shadow (got \"off\")",
		},
		{
			jsonRules(`"evaluation": "any", "jwt": 1, "y": {}`, ok),
			"jwt must be a string (got a number)\n" +
				"evaluation must be ladders or all_match or first_match (got \"any\")\ny is an unknown field",
		},
		{
			jsonRules(`"selector": {"methods": [1, ""], "hosts": [null, "a", "*"]}`, ok),
			"selector.hosts[0] must be a string (got null)\n" +
				"selector.methods[0] must be a string (got a number)\n" +
				"selector.hosts[2] must be a host name, an IPv4 address or an IPv6 address in " +
				"brackets (got \"*\")\nselector.methods[1] must be a method, such as GET (got \"\")",
		},
		{
			jsonRules(`"except": [{}, {"hosts": ["*"]}]`, jsonRule("a", "[]", 1,
				`"except": [{"pathExact": "x", "ip:address": [1], "path": 1}, 1]`),
				jsonRule("b", "[]", 1, `"except": []`)),
			"rules[0].except[0][\"ip:address\"][0] must be a string (got a number)\n" +
				"rules[0].except[0].path is an unknown field\n" +
				"rules[0].except[1] must be an object (got a number)\n" +
				"rules[1].except must not be empty\n" +
				"rules[0].except[0].pathExact must start with / (got \"x\")\n" +
				"except[0] must not be empty, because every request would be an exception\n" +
				"except[1].hosts[0] must be a host name, an IPv4 address or an IPv6 address in " +
				"brackets (got \"*\")",
		},
		{`{"name": "a", "limit_keys": [], "algorithm_config": []}`,
			"algorithm_config must be an object (got an array)"},
		{jsonRules(""), "rules must not be empty without fallback_limit, because nothing would be " +
			"limited"},
		{`{"policies": []}`, "policies must not be empty, because nothing would be limited"},
		{sprintf(`{"policies": [{"spec": {"rules": [%s]}}]}`, ok), "policies[0].id must not be empty"},
		{`{"rules": {}}`, "rules must be an array (got an object)"},
		{
			`{"name": "a", "algorithm": "leaky"}`,
			"limit_keys is missing ([] means one bucket for all requests)\n" +
				"algorithm must be token_bucket (got \"leaky\")\nalgorithm_config is missing",
		},
		{
			jsonRules(`"selector": {"pathPrefix": "v1", "methods": [""], "path": 1,
				"hosts": ["a.example:80", "[::1]:80", "::1"]}`, ok),
			"selector.path is an unknown field\nselector.pathPrefix must start with / (got \"v1\")\n" +
				"selector.hosts[2] must be a host name, an IPv4 address or an IPv6 address in " +
				"brackets (got \"::1\")\nselector.methods[0] must be a method, such as GET (got \"\")",
		},
		{jsonRules(`"fallback_limit": {"limit_keys": []}`),
			"fallback_limit.algorithm_config is missing"},
		{
			sprintf(`{"expires_at": "soon", "kill_switches": [{}], "global_shadow": {}, "policies": [
			{"id": "a", "spec": {"rules": [], "loop_detection": {}}},
			{"id": "a", "spec": {"rules": [%s]}}, {"id": ""}]}`, bad(`"rps": 9, "burst": 1`)),
			"expires_at must be a time such as 2026-01-31T00:00:00Z (got \"soon\")\n" +
				"kill_switches are not supported\n" +
				"policies[0].spec.rules must not be empty without fallback_limit, because nothing " +
				"would be limited\n" +
				"policies[0].spec.loop_detection is an unknown field\n" +
				"policies[1].spec.rules[0].algorithm_config.burst must be >= " +
				"tokens_per_second (got 1, want >= 9)\n" +
				"policies[2].spec is missing\n" +
				"global_shadow is an unknown field\n" +
				"policies[1].id must be unique (got \"a\" again)\npolicies[2].id must not be empty",
		},
		{
			sprintf(`{"policies": [{"id": "a", "spec": {"rules": [%s]}},
			{"id": "b", "spec": {"rules": [%s]}}, {"id": "c", "spec": {"rules": [%[1]s]}}]}`,
				jsonRule("r", "[]", 1, ""), jsonRule("a/r", "[]", 1, "")),
			"policies[1].spec.rules[0].name must be different: " +
				"clients would see \"a/r\" for this rule and for policies[0].spec.rules[0]",
		},
		{
			sprintf(`{"policies": [{"id": "a", "spec": {"rules": [%s, %s]}},
			{"id": "b", "spec": {"rules": [%[1]s]}}]}`,
				jsonRule("r", "[]", 1, ""), jsonRule("a/r", "[]", 1, "")),
			"policies[0].spec.rules[1].name must be different: " +
				"clients would see \"a/r\" for this rule and for policies[0].spec.rules[0]",
		},
		// What happens at the limit.
		{jsonRule("r", "[]", 1, `"on_limit": "wait"`), `on_limit must be refuse or delay (got "wait")`},
		{jsonRule("r", "[]", 1, `"on_limit": 1`), "on_limit must be a string (got a number)"},
		{jsonRule("r", "[]", 1, `"on_limit": "delay"`),
			"max_delay is missing, because on_limit is delay"},
		{jsonRule("r", "[]", 1, `"on_limit": "delay", "max_delay": "1"`),
			`max_delay must be a duration such as "500ms" (got "1")`},
		{jsonRule("r", "[]", 0, `"on_limit": "delay", "max_delay": "1s"`),
			"algorithm_config.burst must be > 0 (got 0)"},
		{jsonRule("r", "[]", 1, `"on_limit": "delay", "max_delay": 500`),
			`max_delay must be a duration such as "500ms" (got a number)`},
		{jsonRule("r", "[]", 1, `"on_limit": "delay", "max_delay": "0s"`),
			"max_delay must be > 0 (got 0s)"},
		{jsonRules("", jsonRule("r", "[]", 1, `"on_limit": "delay", "max_delay": "-1s"`)),
			"rules[0].max_delay must be > 0 (got -1s)"},
		{jsonRule("r", "[]", 1, `"block": 60`),
			`block must be a duration such as "500ms" (got a number)`},
		{jsonRule("r", "[]", 1, `"block": "0s"`), "block must be > 0 (got 0s)"},
		{jsonRule("r", "[]", 1, `"block": "999us"`), "block must be 1ms to 8760h (got 999µs)"},
		{jsonRule("r", "[]", 1, `"block": "8760h1ns"`),
			"block must be 1ms to 8760h (got 8760h0m0.000000001s)"},
		{jsonRule("r", "[]", 1, `"block": "1h", "on_limit": "delay", "max_delay": "1s"`),
			"block must not be in a rule with on_limit delay, which lets clients come too fast"},
		{`{"name": "r", "limit_keys": [], "block": "1h", "algorithm_config": {"rps": 1, "burst": 1,
			"adaptive": {"min": 1, "max": 1, "target_p99": "1s"}}}`,
			"block must not be in a rule with adaptive, because a slow downstream would block clients"},
		{jsonRule("r", "[]", 1, `"priority": {"by": "ip:address", "keep": {}}`),
			"priority.by must not be ip:address (got \"ip:address\")\npriority.keep must not be empty"},
		{jsonRule("r", "[]", 1, `"priority": {"by": "header:x", "keep": {}}`),
			"priority.keep must not be empty"},
		{jsonRule("r", "[]", 1, `"priority": {"by": "header:x", "keep": {"a": 1, "b": -0.1}}`),
			"priority.keep.b must be >= 0 (got -0.1)\n" +
				"priority.keep.a must be 0 or more, and below 1 (got 1)"},
		{jsonRule("r", "[]", 1, `"priority": {"by": "header:x", "keep": {"": 0}}`),
			`priority.keep must not have the name "", because an empty value counts as missing`},
		{jsonRule("r", "[]", 1, `"priority": {"by": "header:x", "keep": {"*": 0}}, "block": "1s"`),
			"priority must not be in a rule with block, because one class would block the others"},
		{
			jsonRule("r", "[]", 1, `"priority": {"by": "header:x", "keep": {"*": 0}}, "on_limit": "delay",
				"max_delay": "1s"`),
			"priority must not be in a rule with on_limit delay, which lends tokens in advance",
		},
		{jsonRules(`"max_waiting": 0.5`, jsonRule("r", "[]", 1, "")),
			"max_waiting must be a whole number, 1 to 1048576 (got 0.5)"},
		{jsonRules(`"max_waiting": 1048577`, jsonRule("r", "[]", 1, "")),
			"max_waiting must be a whole number, 1 to 1048576 (got 1048577)"},
		// Tiers.
		{tiers(`{}`), "algorithm_config.tiers.by is missing\nalgorithm_config.tiers.limits is missing"},
		{tiers(`{"by": "header:p", "limits": {}}`),
			"algorithm_config.tiers.limits must have 1 to 65535 tiers (got 0)"},
		{tiers(`{"by": "ip:address/48", "limits": {"a": {"rps": 1, "burst": 1}}}`),
			`algorithm_config.tiers.by must not be ip:address (got "ip:address/48")`},
		{tiers(`{"by": "header:p", "limits": {"a": {"rps": 2, "burst": 1}, "b": {"rps": 2, "bust": 1}}}`),
			"algorithm_config.tiers.limits.a.burst must be >= tokens_per_second (got 1, want >= 2)\n" +
				"algorithm_config.tiers.limits.b.burst is missing\n" +
				"algorithm_config.tiers.limits.b.bust is an unknown field"},
		{tiers(`{"by": "header:p", "limits": {"a": 1}}`),
			"algorithm_config.tiers.limits.a must be an object (got a number)"},
		{tiers(`{"by": "header:", "limits": {"": {"rps": 1, "burst": 1}}}`),
			"algorithm_config.tiers.by must be header:<name>, with a name of A-Z a-z 0-9 _ - " +
				`(got "header:")` + "\nalgorithm_config.tiers.limits must not have the name \"\", because " +
				"an empty value counts as missing"},
		{strings.Replace(tiers(`{"by": "header:p", "limits": {"a": {"rps": 1, "burst": 1}}}`), `[]`,
			`["ip:address/64,/48"]`, 1),
			"algorithm_config.tiers have no meaning for a key with parent networks"},
		// Adaptive rates.
		{adaptive(`"max": 9, "target_p99": "1s"`), "algorithm_config.adaptive.min is missing"},
		{adaptive(`"min": 1, "max": 500, "x": 1`), "algorithm_config.adaptive.target_p99 is missing\n" +
			"algorithm_config.adaptive.x is an unknown field"},
		{adaptive(`"min": 0, "max": 500, "target_p99": "1"`),
			"algorithm_config.adaptive.min must be > 0 (got 0)\nalgorithm_config.adaptive.target_p99 " +
				`must be a duration such as "500ms" (got "1")`},
		{adaptive(`"min": 1, "max": 500, "target_p99": "9h"`),
			"algorithm_config.adaptive.target_p99 must be 1µs to 1h (got 9h0m0s)"},
		{adaptive(`"min": 900, "max": 500, "target_p99": "1s"`),
			"algorithm_config.adaptive.max must be Min to 1e+09 tokens a second (got 500)"},
		{adaptive(`"min": 1, "max": 99, "target_p99": "1s"`),
			"algorithm_config.tokens_per_second must be between min and max of adaptive, because it is " +
				"the first rate (got 100, want 1 to 99)"},
		{adaptive(adaptiveRange + `}, "tiers": {"by": "x", "limits": {"a": {"rps": 1, "burst": 1}}`),
			"algorithm_config.adaptive must not be in a rule with tiers"},
		{strings.Replace(adaptive(adaptiveRange), "[]", `["ip:address/64,/48"]`, 1),
			"algorithm_config.adaptive must not be in a rule with a key that has parent networks"},
		{strings.Replace(adaptive(adaptiveRange), "{", `{"on_limit": "delay", "max_delay": "1s",`, 1),
			"algorithm_config.adaptive must not be in a rule with on_limit delay, because requests " +
				"that wait have delays of an old rate"},
		// Parent networks.
		{jsonRule("r", `[]`, 1, `"match": {"ip:address/64": "::"}`),
			`match["ip:address/64"] must be without a prefix, because an address is compared`},
		{jsonRule("r", `["ip:address/64,/48"]`, 1<<29, ""),
			"limit_keys have a parent with too high a limit: r/48 has 4 times the tokens of the one " +
				"before it"},
		{jsonRule("r", `["ip:address", "ip:address/64"]`, 1, ""), "limit_keys[1] must be the only " +
			`ip:address (got "ip:address" and "ip:address/64")`},
		{
			jsonRules("", jsonRule("r", `["x", "ip:address/64,/48"]`, 1, ""), jsonRule("r/48", "[]", 1, "")),
			`rules[1].name must be unique (got "r/48" again)`,
		},
	} {
		p, err := Parse([]byte(c.policy))
		if want := "httplimit: policy:\n" + c.want; p != nil || err == nil || err.Error() != want {
			t.Errorf("%s\n%v\nwant\n%s", c.policy, err, want)
		}
	}
}

func TestPrefixesThatAreWrong(t *testing.T) {
	for _, key := range []string{"/64,/64", "/6,8", "/48,/64", "/", "/0", "/064", "/129", "/ 64"} {
		_, err := Parse([]byte(jsonRule("r", `["x", "ip:address`+key+`"]`, 1, "")))
		if want := "limit_keys[1] must be ip:address, with IPv6 prefixes from long to short if it has " +
			"any, such as ip:address/64,/56,/48"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", key, err, want)
		}
	}
}

// A policy that is made in Go is checked like a policy that is read.
func TestDelaysMadeInGo(t *testing.T) {
	limit := tb.Limit{Capacity: 1, Tokens: 1, Per: time.Second}
	for _, c := range []struct {
		rule    Rule
		waiting int
		want    string
	}{
		{Rule{OnLimit: Delay, MaxDelay: time.Second}, 0, ""},
		{Rule{OnLimit: Delay}, 0, "rules[0].max_delay is missing, because on_limit is delay"},
		{Rule{OnLimit: Delay, MaxDelay: -1}, 0, "rules[0].max_delay must be > 0 (got -1ns)"},
		{Rule{OnLimit: 2}, 0, "rules[0].on_limit is 2, want Refuse or Delay"},
		{Rule{OnLimit: -1}, 0, "rules[0].on_limit is -1, want Refuse or Delay"},
		{Rule{}, -1, "max_waiting must be a whole number, 1 to 1048576 (got -1)"},
	} {
		c.rule.Name, c.rule.Limit = "r", limit
		p := Rules(c.rule)
		p.MaxWaiting = c.waiting
		got := ""
		if err := errors.Join(p.Check()...); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.rule, got, c.want)
		}
	}
}

func TestMostTiers(t *testing.T) {
	r := Rule{Name: "r", Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: 1}}
	r.Tiers = Tiers{By: "header:p", Limits: map[string]tb.Limit{}}
	for i := range maxTiers {
		r.Tiers.Limits[sprint(i)] = r.Limit
	}
	if err := errors.Join(Rules(r).Check()...); err != nil {
		t.Error(err)
	}
	r.Tiers.Limits["more"] = r.Limit
	err := errors.Join(Rules(r).Check()...)
	if err == nil || !strings.Contains(err.Error(), "must have 1 to 65535 tiers (got 65536)") {
		t.Error(err)
	}
}

func TestLimitOfAParent(t *testing.T) {
	const most = tb.MaxCapacity
	for _, c := range []struct{ limit, parent tb.Limit }{
		{tb.Limit{Capacity: 10, Tokens: 3, Per: time.Second},
			tb.Limit{Capacity: 40, Tokens: 12, Per: time.Second}},
		{tb.Limit{Capacity: most / 4, Tokens: 2, Per: 8}, tb.Limit{Capacity: most, Tokens: 8, Per: 8}},
		{tb.Limit{Capacity: most/4 + 1, Tokens: 2, Per: 8}, tb.Limit{}},
		{tb.Limit{Capacity: 10, Tokens: 2, Per: 7}, tb.Limit{}},
		{tb.Limit{Tokens: 2, Per: 8}, tb.Limit{}},
	} {
		if got := times(c.limit, 4); got != c.parent {
			t.Errorf("%+v: %+v, want %+v", c.limit, got, c.parent)
		}
	}
}
