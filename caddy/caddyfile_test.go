package tokenbucket

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// handlerOf returns the JSON of the first handler of a site.
func handlerOf(t *testing.T, directive string) map[string]any {
	t.Helper()
	config, err := adapt(":80 {\n" + directive + "\n}")
	if err != nil {
		t.Fatal(err)
	}
	routes := at(config, "apps", "http", "servers", "srv0")["routes"].([]any)
	return routes[0].(map[string]any)["handle"].([]any)[0].(map[string]any)
}

func TestTheDirectiveIsThePolicy(t *testing.T) {
	got := handlerOf(t, `token_bucket api {
		rule first {
			key {client_ip} {http.request.header.X-Tenant} {query.q} {host} {http.auth.user.id}
			ipv6_prefixes 64 56
			parent_factor 8
			rate 100/m
			burst 20
			method GET post
			host a.example
			path /x /y/*
			match {http.request.header.X-Plan} free
			match {http.vars.tier} 2
			cost header:x-weight default 2 min 0.5 max 8
			on_missing shared
			shadow
		}
		rule second {
			key none
			rate 2.5/1m30s
			burst 1
			delay 500ms
			cost response:header:x-usage hide
		}
		rule third {
			key {http.static}
			rate 1/d
			burst 3
			cost 3
		}
		max_waiting 5
		max_keys 1000
		overflow refuse
		ipv4_prefix 24
		ipv6_prefix 56
		fields refused
		policy_field
		x_ratelimit
		reason_field X-Why
		shared_secret s
		show_keys
		redis localhost:6379 {
			timeout 20ms
			on_failure refuse
		}
	}`)
	want := `{
		"handler": "token_bucket", "name": "api", "show_keys": true, "max_keys": 1000,
		"overflow": "refuse", "ipv4_prefix": 24, "ipv6_prefix": 56, "fields": "refused",
		"policy_field": true, "x_ratelimit": true, "reason_field": "X-Why", "shared_secret": "s",
		"redis": {"address": "localhost:6379", "timeout": 20000000, "on_failure": "refuse"},
		"policy": {"max_waiting": 5, "policies": [
			{"id": "first", "spec": {
				"selector": {
					"methods": ["GET", "post"], "hosts": ["a.example"], "pathExact": "/x", "pathPrefix": "/y/"
				},
				"rules": [{
					"name": "first",
					"limit_keys": [
						"ip:address/64,/56", "header:x-tenant", "query:q", "header:host", "{http.auth.user.id}"
					],
					"match": {"header:x-plan": "free", "{http.vars.tier}": "2"},
					"on_missing": "shared", "mode": "shadow",
					"algorithm_config": {
						"tokens_per_second": 1.6666666666666667, "burst": 20, "parent_factor": 8,
						"cost_source": "header:x-weight", "default_cost": 2, "min_cost": 0.5, "max_cost": 8
					}
				}]
			}},
			{"id": "second", "spec": {"rules": [{
				"name": "second", "limit_keys": [], "on_limit": "delay", "max_delay": "500ms",
				"algorithm_config": {
					"tokens_per_second": 0.027777777777777776, "burst": 1,
					"cost_source": "response:header:x-usage", "hide_cost_header": true
				}
			}]}},
			{"id": "third", "spec": {"rules": [{
				"name": "third", "limit_keys": ["{http.static}"],
				"algorithm_config": {
					"tokens_per_second": 0.000011574074074074073, "burst": 3, "fixed_cost": 3
				}
			}]}}
		]}
	}`
	var wanted map[string]any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, wanted) {
		text, _ := json.MarshalIndent(got, "", "\t")
		t.Errorf("%s", text)
	}
}

// Each error has the line to which it belongs.
func TestErrorsOfTheDirectiveHaveTheirPlace(t *testing.T) {
	const key = "key none\n"
	rule := func(lines string) string { return "token_bucket {\nrule r {\n" + lines + "\n}\n}" }
	for _, c := range []struct{ directive, want string }{
		{"token_bucket", "want either rules or policy_file, at Caddyfile:2"},
		{"token_bucket a b", "at Caddyfile:2"},
		{"token_bucket {\nburst 1\n}", `unknown option "burst", at Caddyfile:3`},
		{"token_bucket {\nrule {\n}\n}", "at Caddyfile:3"},
		{"token_bucket {\nmax_keys many\n}", `"many" is not a whole number above 0, at Caddyfile:3`},
		{"token_bucket {\npolicy_field on\n}", "at Caddyfile:3"},
		{"token_bucket {\nfields some\n" + perHour("r", "1", key) + "}",
			`fields is "some", want all or refused`},
		{"token_bucket {\noverflow x\n" + perHour("r", "1", key) + "}",
			`overflow is "x", want forgive or refuse`},
		{"token_bucket {\npolicy_file p\n" + perHour("r", "1", key) + "}", "want either"},
		{"token_bucket {\nredis a {\ntimeout soon\n}\n}", "at Caddyfile:4"},
		{"token_bucket {\nredis a {\nretries 1\n}\n}",
			`unknown option "retries" of redis, at Caddyfile:4`},
		{"token_bucket {\n" + perHour("r", "1", key) + perHour("r", "1", key) + "}", `Caddyfile:2`},
		{rule("burst 1"), `rule "r" has no key: want {client_ip}, for example, or none for one ` +
			"bucket for all requests, at Caddyfile:3"},
		{rule(key + "burst 1"), "tokens_per_second"},
		{rule(key + "rate 1/s"), "burst"},
		{rule(key + "rate 5/s\nburst 2"),
			"burst must be >= tokens_per_second (got 2, want >= 5), at Caddyfile:3"},
		{rule(key + "rate 5\nburst 2"), `rate "5": want a number of tokens and a time, such as ` +
			"5/s, 100/m or 1/90s, at Caddyfile:5"},
		{rule(key + "rate x/s"), `"x" is not a number above 0, at Caddyfile:5`},
		{rule(key + "rate 1/0s"), `rate "1/0s"`},
		{rule("key"), "at Caddyfile:4"},
		{rule("key words\nrate 1/s\nburst 1"), "limit_keys[0] must be ip:address"},
		{rule("key {client_ip\nrate 1/s\nburst 1"), "limit_keys[0] must be ip:address"},
		{rule("key none\nrate 1/s\nburst 1\nipv6_prefixes 64"),
			"has ipv6_prefixes, but its key has no {client_ip}"},
		{rule("path /a /b"),
			`path "/b": want at most one path and one prefix such as /api/*, at Caddyfile:4`},
		{rule("path /*/b"), `path "/*/b"`},
		{rule("cost 1 2"), "at Caddyfile:4"},
		{rule("cost header:x most 2"), `unknown option "most" of cost, at Caddyfile:4`},
		{rule("cost header:x max"), "at Caddyfile:4"},
		{rule("shadow on"), "at Caddyfile:4"},
		{rule("match a"), "at Caddyfile:4"},
		{rule("method"), "at Caddyfile:4"},
		{rule("method GET\nmethod POST"), "method is there twice, at Caddyfile:5"},
		{rule("match {header.X-A} 1\nmatch header:x-a 2"),
			"match header:x-a is there twice, at Caddyfile:5"},
		{rule("cost 0"), `"0" is not a number above 0, at Caddyfile:4`},
		{rule("cost header:x max 0"), `"0" is not a number above 0`},
		{rule("cost NaN"), `"NaN" is not a number above 0`},
		{rule("rate Inf/s"), `"Inf" is not a number above 0`},
		{rule("parent_factor 0"), `"0" is not a whole number above 0`},
		{rule("burst 1 {\nkey none\n}"), `unknown option "{" of a rule`},
		{"token_bucket {\nmax_waiting 0\n}", `"0" is not a whole number above 0`},
		{"token_bucket {\nredis a\nredis b\n}", "redis is there twice, at Caddyfile:4"},
		{"token_bucket {\nredis a {\ntimeout 1s\ntimeout 2s\n}\n}",
			"timeout is there twice, at Caddyfile:5"},
		{rule("window 1m"), `unknown option "window" of a rule, at Caddyfile:4`},
	} {
		_, err := adapt(":80 {\n" + c.directive + "\n}")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\nthe error is %v, want %s", c.directive, err, c.want)
		}
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]float64{
		"5/s": 5, "1e3/m": 1000.0 / 60, "5/.5s": 10, "1/1h30m": 1.0 / 5400, "0.5/s": 0.5,
		"2/d": 2.0 / 86400, "1/µs": 1e6,
	} {
		p := ruleParser{Dispenser: caddyfile.NewTestDispenser("rate " + text)}
		p.Next()
		if err := p.line(); err != nil || p.Limit.Rate != want {
			t.Errorf("%s is %v tokens a second, want %v (%v)", text, p.Limit.Rate, want, err)
		}
	}
}

func TestErrorsOfAPolicyHaveTheirPath(t *testing.T) {
	for _, c := range []struct{ handler, want string }{
		{`{}`, `limiter "default": want either policy or policy_file`},
		{`{"policy": {}, "policy_file": "x"}`, "want either"},
		{`{"policy_file": "/does/not/exist"}`, "no such file"},
		{`{"polices": {}}`, `unknown field "polices"`},
		{`{"policy": {"rules": [{"name": "r", "limit_keys": ["jwt:sub"],
			"algorithm_config": {"tokens_per_second": 1, "burst": 1, "brust": 2}}]}}`,
			"rules[0].algorithm_config.brust is an unknown field"},
		{`{"policy": {"rules": [{"name": "r", "limit_keys": ["jwt:sub"],
			"algorithm_config": {"tokens_per_second": 1, "burst": 1}}]}}`,
			"rules[0].limit_keys[0] needs claims"},
		{`{"max_keys": -1, "policy": {"name": "r", "limit_keys": [],
			"algorithm_config": {"tokens_per_second": 1, "burst": 1}}}`, "MaxKeys"},
	} {
		config, err := adapt(":80 {\nrespond ok\n}")
		if err != nil {
			t.Fatal(err)
		}
		var handler map[string]any
		if err := json.Unmarshal([]byte(c.handler), &handler); err != nil {
			t.Fatal(err)
		}
		handler["handler"] = "token_bucket"
		at(config, "apps", "http", "servers", "srv0")["routes"] = []any{
			map[string]any{"handle": []any{handler}},
		}
		s := &server{t: t, log: t.TempDir() + "/log"}
		s.listen(config, "127.0.0.1:0")
		if err := s.run(config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\nthe error is %v, want %s", c.handler, err, c.want)
		}
	}
}
