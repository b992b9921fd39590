package policy

import (
	"slices"
	"strings"
	"testing"
)

// Each policy has a warning that begins with each of these lines, and no other.
func TestWarnings(t *testing.T) {
	free, fixed := jsonRule("free", `["ip:address"]`, 1, ""), jsonRule("fixed", "[]", 1, "")
	key := func(name, more string) string { return jsonRule(name, `["header:k"]`, 1, more) }
	fallback := func(rule string) string { return `"fallback_limit": ` + rule }
	set := func(id, spec string, rules ...string) string {
		return sprintf(`{"id": %q, "spec": %s}`, id, jsonRules(spec, rules...))
	}
	bundle := func(sets ...string) string { return `{"policies": [` + strings.Join(sets, ",") + `]}` }
	cost := func(config string) string {
		return oneRule("[]", `"rps": 1, "burst": 9, "cost_source": "header:w", `+config)
	}
	reported := func(config string) string {
		return oneRule("[]", `"rps": 1, "burst": 9, "cost_source": "response:header:w", `+config)
	}
	tiers := func(by, gold string) string {
		return oneRule(`["ip:address"]`, sprintf(`"rps": 1, "burst": 10, "tiers": {"by": %q,
			"limits": {"gold": {%s}}}`, by, gold))
	}
	const gold = `"match": {"header:plan": "gold"}`
	const chosen = " is chosen by the client"
	const spelled = "selector.pathExact does not pick other spellings that many servers take as the " +
		"same path, such as "
	for _, c := range []struct{ policy, want string }{
		// Costs.
		{oneRule("[]", `"rps": 1, "burst": 2, "fixed_cost": 2`), ""},
		{oneRule("[]", `"rps": 1, "burst": 2, "fixed_cost": 2.5`),
			"algorithm_config.fixed_cost is above burst"},
		{oneRule("[]", `"rps": 1, "burst": 2, "cost_source": "header:w"`),
			"algorithm_config.cost_source lets clients"},
		{oneRule("[]", `"rps": 1, "burst": 2, "cost_source": "query:w", "min_cost": 1`),
			"algorithm_config.cost_source lets clients"},
		{oneRule("[]", `"rps": 1, "burst": 2, "fixed_cost": 1e-40, "max_cost": 1e17`), ""},
		{oneRule("[]", `"rps": 1, "burst": 2, "fixed_cost": 1.`+strings.Repeat("0", 38)), ""},
		{cost(`"min_cost": 1, "max_cost": 2`), ""},
		{cost(`"min_cost": 9, "max_cost": 20, "default_cost": 9`), ""},
		{cost(`"min_cost": 2, "max_cost": 2`), "algorithm_config.default_cost is below min_cost (1 < 2)"},
		{cost(`"min_cost": 2, "max_cost": 2, "default_cost": 2`), ""},
		{cost(`"min_cost": 10, "max_cost": 20, "default_cost": 1`),
			"algorithm_config.min_cost is above burst"},
		{cost(`"min_cost": 1, "max_cost": 2, "default_cost": 10`),
			"algorithm_config.default_cost is above burst"},
		{strings.Replace(free, `"limit_keys"`, `"max_delay": "1s", "limit_keys"`, 1),
			"max_delay has no effect"},
		{jsonRules("", fixed, jsonRule("r", `["header:x", "query:x"]`, 1, `"block": "1h"`)),
			"rules[1].block is for a key that the client chooses"},
		{jsonRule("r", "[]", 5, `"priority": {"by": "header:x", "keep": {"a": 0.5}}`),
			`priority.by is chosen by the client, which can name the class that leaves the least (got "h`},
		{jsonRule("r", "[]", 5, `"priority": {"by": "jwt:class", "keep": {"a": 0.8, "*": 0.8}}`), ""},
		{jsonRule("r", "[]", 1, `"priority": {"by": "class", "keep": {"a": 0.81}}`),
			"priority.keep.a lets the class take 0.19 tokens, and a request costs 1"},
		{jsonRules("", fixed, jsonRule("r", `["jwt:sub"]`, 1, `"block": "1h"`)), ""},
		{jsonRules("", jsonRule("r", `["ip:address"]`, 1, `"block": "1ms"`),
			jsonRule("s", `["ip:address"]`, 1, `"block": "8760h"`)), ""},
		{strings.Replace(fixed, `"limit_keys"`, `"block": "1h", "limit_keys"`, 1),
			"block is for all requests together"},
		{jsonRules("", jsonRule("r", `["ip:address", "header:x"]`, 1, `"block": "1h"`),
			jsonRule("s", `["ip:address"]`, 1, `"block": "1h"`)), ""},
		// Costs in the response.
		{reported(`"default_cost": 2`), ""},
		{reported(`"min_cost": 1, "max_cost": 20, "default_cost": 9`), ""},
		{reported(`"max_cost": 2`), "algorithm_config.default_cost is not set"},
		{oneRule("[]", `"rps": 1, "burst": 9, "cost_source": "response:status",
			"status_costs": {"401": 1}`), ""},
		{reported(`"default_cost": 10`), "algorithm_config.default_cost is above burst"},
		// Rates that adapt, of which the first may be the least or the greatest.
		{oneRule(`["ip:address"]`, `"rps": 100, "burst": 5, "adaptive": {`+adaptiveRange+`}`),
			"algorithm_config.adaptive changes the rate of all keys together"},
		{oneRule("[]", `"rps": 0.1, "burst": 5, "adaptive": {"min": 0.1, "max": 9, "target_p99": "1s"}`),
			""},
		{oneRule("[]", `"rps": 1000, "burst": 5, "adaptive": {`+adaptiveRange+`}`), ""},
		// Claims.
		{jsonRules(`"jwt": "unverified"`, fixed),
			"jwt is unverified: without a check of the signature"},
		{jsonRules(`"jwt": "context"`, fixed), ""},
		// Sets that limit nothing.
		{jsonRules(`"mode": "shadow"`, fixed), "rules limit nothing, because all are shadow rules"},
		{jsonRules("", jsonRule("a", "[]", 1, `"mode": "shadow"`)),
			"rules limit nothing, because all are shadow rules"},
		{bundle(set("a", `"mode": "shadow"`, fixed), set("b", "", free)),
			"policies[0].spec.rules limit nothing"},
		// Keys that a client chooses.
		{key("a", ""), "limit_keys[0]" + chosen},
		{jsonRule("a", `["cookie:sid"]`, 1, ""), "limit_keys[0]" + chosen},
		{key("a", `"on_missing": "reject"`), "limit_keys[0]" + chosen},
		{jsonRule("a", `["ip:address", "query:k"]`, 1, ""), "limit_keys[1]" + chosen},
		{jsonRule("a", `["ip:address"]`, 1, gold), `match["header:plan"]` + chosen},
		{jsonRule("a", `["tenant"]`, 1, `"match": {"jwt:plan": 1}`), ""},
		{key("a", `"mode": "shadow"`), "rules limit nothing"},
		{jsonRule("a", `["ip:address/128"]`, 1, ""), "limit_keys[0]" + chosen},
		{jsonRule("a", `["ip:address/128,/64"]`, 1, ""), ""},
		{jsonRule("a", `["ip:address/1"]`, 1, ""), ""},
		{jsonRules("", jsonRule("a", `["ip:address/96"]`, 1, ""), free), ""},
		{jsonRules("", jsonRule("a", `["ip:address"]`, 2, gold), free),
			`rules[0].match["header:plan"]` + chosen + ", which so has this limit"},
		{
			jsonRules("", jsonRule("a", `["tenant"]`, 2, gold), jsonRule("b", `["tenant"]`, 1,
				`"on_missing": "reject"`), free),
			`rules[0].match["header:plan"]` + chosen + ", which so has this limit",
		},
		{jsonRules("", jsonRule("a", `["tenant"]`, 2, gold), jsonRule("b", `["tenant"]`, 1, ""), free),
			""},
		{jsonRules("", jsonRule("a", `["ip:address"]`, 1, gold), free), ""},
		{jsonRules(`"evaluation": "all_match"`, jsonRule("a", `["ip:address"]`, 2, gold), free), ""},
		{jsonRules("", key("a", ""), free), ""},
		{jsonRules("", key("a", ""), fixed), ""},
		{jsonRules("", key("a", ""), jsonRule("b", `["ip:address/64,/48"]`, 1, "")), ""},
		{jsonRules(`"evaluation": "first_match"`, key("a", ""), free), "rules[0].limit_keys[0]" + chosen},
		{jsonRules("", key("a", ""), jsonRule("b", "[]", 1, `"mode": "shadow"`)),
			"rules[0].limit_keys[0]" + chosen},
		{jsonRules(fallback(fixed), key("a", "")), "rules[0].limit_keys[0]" + chosen},
		{bundle(set("a", "", key("a", "")), set("b", "", free)), ""},
		{bundle(set("a", "", key("a", "")), set("b", `"selector": {"pathPrefix": "/v1/"}`, free)),
			"policies[0].spec.rules[0].limit_keys[0]" + chosen},
		{bundle(set("a", "", key("a", "")), set("b", `"selector": {"pathPrefix": "/"}`, free)), ""},
		{
			bundle(set("a", "", key("a", "")),
				set("b", `"selector": {"methods": ["POST"], "pathPrefix": "/"}`, free)),
			"policies[0].spec.rules[0].limit_keys[0]" + chosen,
		},
		{
			bundle(set("a", "", key("a", "")),
				set("b", `"selector": {"hosts": ["a.test"], "pathPrefix": "/"}`, free)),
			"policies[0].spec.rules[0].limit_keys[0]" + chosen + "\npolicies[1].spec.selector.hosts",
		},
		{jsonRules(`"jwt": "unverified"`, jsonRule("a", `["jwt:sub"]`, 1, "")),
			"jwt is unverified\nrules[0].limit_keys[0]" + chosen},
		// Exceptions that a client chooses.
		{jsonRules("", key("a", ""), jsonRule("b", "[]", 1, `"except": [{"hosts": ["a"]}]`)),
			"rules[0].limit_keys[0]" + chosen + "\nrules[1].except[0].hosts are chosen by"},
		{jsonRules(`"except": [{"hosts": ["a.test"]}]`, free), "except[0].hosts are chosen by"},
		{jsonRules(`"except": [{"hosts": ["a.test"], "ip:address": ["10.0.0.1"]}]`, free), ""},
		{jsonRules(`"except": [{"pathPrefix": "/"}, {"methods": ["head"]}]`, fixed),
			"except[1].methods have HEAD but not GET"},
		{jsonRules("", jsonRule("a", "[]", 1, `"except": [{"hosts": ["a"]}]`)), "rules[0].except[0]"},
		{jsonRules("", jsonRule("a", "[]", 1, `"except": [{"hosts": ["a"], "methods": ["head"]}]`),
			free), ""},
		{jsonRules("", key("a", ""), jsonRule("b", "[]", 1, `"except": [{"pathExact": "/"}]`)), ""},
		{jsonRules("", key("a", ""), jsonRule("b", "[]", 1, `"except": [{"hosts": ["a"],
			"ip:address": ["10.0.0.1"]}]`)), ""},
		// Tiers that a client chooses.
		{
			tiers("header:plan", `"rps": 1, "burst": 11`), "algorithm_config.tiers.by" + chosen +
				`, which so has the limit of gold instead of the lower one of the rule (got "header:plan")`,
		},
		{tiers("query:plan", `"rps": 2, "burst": 10`), "algorithm_config.tiers.by" + chosen},
		{tiers("header:plan", `"rps": 0.5, "burst": 10`), ""},
		{tiers("jwt:plan", `"rps": 1, "burst": 11`), ""},
		{tiers("plan", `"rps": 1, "burst": 11`), ""},
		{bundle(set("a", "", key("a", "")), set("b", `"selector": {"methods": ["POST"]}`, free)),
			"policies[0].spec.rules[0].limit_keys[0]" + chosen},
		// Spellings that a selector does not pick.
		{jsonRules(`"selector": {"pathExact": "/a"}`, free), spelled + `"/a/" and "/a;x",`},
		{jsonRules(`"selector": {"pathExact": "/a/"}`, free), spelled + `"/a" and "/a/;x",`},
		{jsonRules(`"selector": {"pathExact": "/a", "pathPrefix": "/a"}`, free), spelled + `"/a;x",`},
		{jsonRules(`"selector": {"pathExact": "/a/", "pathPrefix": "/a/"}`, free), spelled + `"/a",`},
		{jsonRules(`"selector": {"pathExact": "/a/b", "pathPrefix": "/a/"}`, free), ""},
		{bundle(set("a", `"selector": {"pathPrefix": "/a"}`, free), set("b", "", fixed)),
			`policies[0].spec.selector.pathPrefix picks what is below "/a/", but neither "/a" nor "/ax": `},
		{jsonRules("", jsonRule("a", "[]", 1, `"except": [{"pathPrefix": "/a"}]`)),
			"rules[0].except[0].pathPrefix picks what is below"},
		{jsonRules(`"except": [{"pathPrefix": "/a*"}]`, fixed), "except[0] has a * in a path"},
		{jsonRules(`"selector": {"pathExact": "/"}`, free), ""},
		{jsonRules(`"selector": {"pathPrefix": "/a/*"}`, free), "selector has a * in a path, where"},
		{
			bundle(set("a", `"selector": {"pathExact": "/login"}`, free), set("b", "", fixed)), "",
		},
		{jsonRules(`"selector": {"methods": ["get"]}`, free), "selector.methods have GET but not HEAD"},
		{jsonRules(`"selector": {"methods": ["GET", "HEAD"]}`, free), ""},
		{jsonRules(`"selector": {"hosts": ["a.test"]}`, free), "selector.hosts are chosen by the client"},
		{jsonRules(`"selector": {"methods": ["POST"]}`, free), ""},
	} {
		got := strings.Join(mustParse(t, c.policy).Warnings(), "\n")
		lines, want := strings.Split(got, "\n"), strings.Split(c.want, "\n")
		if (got == "") != (c.want == "") || !slices.EqualFunc(lines, want, strings.HasPrefix) {
			t.Errorf("%s\n%q, want %q", c.policy, got, c.want)
		}
	}
}
