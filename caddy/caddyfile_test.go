package tokenbucket

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestTheDirectiveIsThePolicy(t *testing.T) {
	config := mustAdapt(t, ":80 {\n"+`token_bucket api {
		rule first {
			key {client_ip} {http.request.header.X-Tenant} {query.q} {host} {http.auth.user.id}
			ipv6_prefixes 64 56
			rate 100/m
			burst 20
			method GET post
			host a.example
			path /x /y/*
			match {
				header X-Plan free
				vars {vars.tier} 2
			}
			match /z/*
			except {
				client_ip 10.0.0.0/8 ::1
				path /x/* /y
			}
			except {
				method GET
				host b.example
			}
			cost header:x-weight default 2 min 0.5 max 8
			on_missing shared
			shadow
		}
		rule second {
			key none
			rate 2.5/1m30s
			burst 1
			delay 500ms
			cost response:header:x-usage
		}
		rule third {
			key {http.static}
			rate 1/d
			burst 3
			block 1d
			cost 3
		}
		rule fourth {
			key none
			rate 1/s
			burst 3
			priority {http.request.header.X-Class} crawler 0.5 * 0.2
			cost response:status 401 1 2xx 0 default 0.5
		}
		max_waiting 5
		except {
			path /health
		}
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
	}`+"\n}")
	route := at(config, "apps", "http", "servers", "srv0")["routes"].([]any)[0]
	got := route.(map[string]any)["handle"].([]any)[0]
	want := `{
		"handler": "token_bucket", "name": "api", "show_keys": true, "max_keys": 1000,
		"caddyfile": "Caddyfile:2",
		"matchers": {"first": [
			{"header": {"X-Plan": ["free"]}, "vars": {"{http.vars.tier}": ["2"]}}, {"path": ["/z/*"]}
		]},
		"overflow": "refuse", "ipv4_prefix": 24, "ipv6_prefix": 56, "fields": "refused",
		"policy_field": true, "x_ratelimit": true, "reason_field": "X-Why", "shared_secret": "s",
		"redis": {"address": "localhost:6379", "timeout": 20000000, "on_failure": "refuse"},
		"policy": {"max_waiting": 5, "except": [{"pathExact": "/health"}], "policies": [
			{"id": "first", "spec": {
				"selector": {
					"methods": ["GET", "post"], "hosts": ["a.example"], "pathExact": "/x", "pathPrefix": "/y/"
				},
				"rules": [{
					"name": "first",
					"limit_keys": [
						"ip:address/64,/56", "header:x-tenant", "query:q", "header:host", "{http.auth.user.id}"
					],
					"match": {"matcher:first": "true"},
					"except": [
						{"ip:address": ["10.0.0.0/8", "::1"], "pathExact": "/y", "pathPrefix": "/x/"},
						{"methods": ["GET"], "hosts": ["b.example"]}
					],
					"on_missing": "shared", "mode": "shadow",
					"algorithm_config": {
						"tokens_per_second": 1.6666666666666667, "burst": 20,
						"cost_source": "header:x-weight", "default_cost": 2, "min_cost": 0.5, "max_cost": 8
					}
				}]
			}},
			{"id": "second", "spec": {"rules": [{
				"name": "second", "limit_keys": [], "on_limit": "delay", "max_delay": "500ms",
				"algorithm_config": {
					"tokens_per_second": 0.027777777777777776, "burst": 1,
					"cost_source": "response:header:x-usage"
				}
			}]}},
			{"id": "third", "spec": {"rules": [{
				"name": "third", "limit_keys": ["{http.static}"], "block": "24h0m0s",
				"algorithm_config": {
					"tokens_per_second": 0.000011574074074074073, "burst": 3, "fixed_cost": 3
				}
			}]}},
			{"id": "fourth", "spec": {"rules": [{
				"name": "fourth", "limit_keys": [],
				"priority": {"by": "header:x-class", "keep": {"crawler": 0.5, "*": 0.2}}, "algorithm_config": {
					"tokens_per_second": 1, "burst": 3, "cost_source": "response:status",
					"default_cost": 0.5, "status_costs": {"401": 1, "2xx": 0}
				}
			}]}}
		]}
	}`
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, wanted) {
		text, _ := json.MarshalIndent(got, "", "\t")
		t.Errorf("%s", text)
	}
}

func TestErrorsOfTheDirectiveHaveTheirPlace(t *testing.T) {
	const key = "key none\n"
	rule := func(lines string) string { return "token_bucket {\nrule r {\n" + lines + "\n}\n}" }
	limited := func(lines string) string { return rule("rate 5/s\nburst 9\n" + lines) } // from line 6
	for _, c := range []struct{ directive, want string }{
		{"token_bucket", "want either rules or policy_file, at Caddyfile:2"},
		{"token_bucket a b", "at Caddyfile:2"},
		{`token_bucket ""`, "wrong argument count"},
		{"token_bucket {\nfields \"\"\n}", "at Caddyfile:3"},
		{"token_bucket default-2", "default-2 is the name of a directive that has none"},
		{"token_bucket {\nmax_waiting 5\npolicy_file p\n}", "belongs in the policy file, at Caddyfile:3"},
		{"token_bucket {\nexcept {\nhost h\n}\npolicy_file p\n}", "the policy file, at Caddyfile:3"},
		{"token_bucket {\nexcept {\nhost *\n}\n" + perHour("r", "1", key) + "}",
			`except host must be a host name, an IPv4 address or an IPv6 address in brackets`},
		{limited("key none\nexcept {\nclient_ip localhost\n}"), `rule "r": except must be an address`},
		{limited("key none\nexcept {\n}"), `rule "r": except must not be empty, because every`},
		{rule("except 10.0.0.1"), "at Caddyfile:4"},
		{rule("except {\nburst 9\n}"), `unknown option "burst" of except, at Caddyfile:5`},
		{rule("except {\nhost a\nhost b\n}"), "host is there twice, at Caddyfile:6"},
		{"token_bucket {\nburst 1\n}", `unknown option "burst", at Caddyfile:3`},
		{"token_bucket {\nrule {\n}\n}", "at Caddyfile:3"},
		{"token_bucket {\nmax_keys many\n}", "from 1 to 1073741824, at Caddyfile:3"},
		{"token_bucket {\npolicy_field on\n}", "at Caddyfile:3"},
		{"token_bucket {\npolicy_file p\nfields some\n}", `"some", want all or refused, at Caddyfile:4`},
		{"token_bucket {\nreason_field a:b\n" + perHour("r", "1", key) + "}",
			"reason_field want A-Z a-z 0-9 _ - or nothing, at Caddyfile:3"},
		{"token_bucket {\nredis a:1 {\ntimeout soon\n}\n}", `"soon", want a time such as 20ms, at`},
		{"token_bucket {\nredis a:1 {\nretries 1\n}\n}", `"retries" of redis, at Caddyfile:4`},
		{"token_bucket {\nredis localhost\n}", "ports are 1 to 65535, at Caddyfile:3"},
		{"token_bucket {\n" + perHour("r", "1", key) + perHour("r", "1", key) + "}",
			`rule "r": rule must be unique (got "r" again), at Caddyfile:9`},
		{"token_bucket {\n" + perHour("/d", "1", key) + "}", "as in match /api/*, at Caddyfile:3"},
		{rule(key + "burst 1"), `rule "r" has no rate: want 5/s or 100/m, for example, at Caddyfile:3`},
		{rule(key + "rate 1/s"), `rule "r" has no burst: want the number of tokens`},
		{rule(key + "rate 5\nburst 2"), "such as 5/s, 100/m or 1/90s, at Caddyfile:5"},
		{rule(key + "burst 9\nrate 2000000000/s"), "1e9 tokens a second, at Caddyfile:6"},
		{rule("key"), "at Caddyfile:4"},
		{rule("key words"), "key words: want placeholders such as {client_ip}, header:<name>"},
		{limited("key {clientip}"), "sets it, copy it with the directive vars, at Caddyfile:6"},
		{limited("key {client_ip} {client_ip}"), "unique (got {client_ip} again), at Caddyfile:6"},
		{rule("rate 5/s\nburst 1073741824\nkey {client_ip}\nipv6_prefixes 64 48"),
			`rule "r": key has a parent with too high a limit: r/48 has 4 times`},
		{limited("key none\nipv6_prefixes 64"), "but its key has no {client_ip}, at Caddyfile:7"},
		{limited("ipv6_prefixes 48 64\nkey {client_ip}"), "such as 64 56 48 (got 48 64), at Caddyfile:6"},
		{rule("path /a /b"), `path "/b": want at most one path and one prefix`},
		{rule("path /*/b"), `path "/*/b"`},
		{rule("path /api*"), `path "/api*": want`},
		{limited("except {\nmethod GET\npath \"\"\n}\nkey none"), `path "": want`},
		{limited("method @writes\nkey none"), `method must be a method, such as GET (got "@writes"), at`},
		{limited("on_missing ask\nkey none"), `"ask", want skip, reject or shared, at Caddyfile:6`},
		{limited("block 500h\ndelay 1s\nkey none"),
			`rule "r": block must not be in a rule with delay, which lets clients come too fast, at`},
		{rule("priority header:x a"), "at Caddyfile:4"},
		{rule(`priority ""`), "at Caddyfile:4"},
		{rule("priority header:x a half"), `"half" is not a number, at Caddyfile:4`},
		{limited("priority header:x a 1\nkey none"), `rule "r": priority a must be 0 or more, and below`},
		{rule("cost 1 2"), "at Caddyfile:4"},
		{rule(`cost ""`), "at Caddyfile:4"},
		{rule("cost header:x most 2"), `unknown option "most" of cost, at Caddyfile:4`},
		{rule("cost header:x max"), "at Caddyfile:4"},
		{limited("cost bytes\nkey none"), `rule "r": cost must be a number, header:<name>, `},
		{limited("cost header:x min 3 max 2\nkey none"), "<= cost max (got 3, want <= 2), at"},
		{rule("cost response:status 401 x"), `"x" is not a number, at Caddyfile:4`},
		{limited("cost response:status 0xx 1\nkey none"), "cost 0xx must be a status such as 401"},
		{limited("cost response:status\nkey none"), `rule "r": cost is missing, because cost is`},
		{rule("match {\n}"), "at Caddyfile:5"},
		{rule("match @lost"), "unrecognized matcher name: @lost, at Caddyfile:4"},
		{rule("match /a /b"), "at Caddyfile:4"},
		{rule("match {\nlost x\n}"), "getting matcher module 'lost'"},
		{rule("cost NaN"), `"NaN" is not a number above 0`},
		{rule("burst 1 {\nkey none\n}"), `unknown option "{" of a rule`},
		{"token_bucket {\nrule a {\nkey none\nrate 5/s\nburst 2\n}\n" +
			perHour("b", "9", key+"path b") + "}",
			`rule "a": burst must be >= the tokens of a second (got 2, want >= 5), at Caddyfile:6` + "\n" +
				`rule "b": path must start with / (got "b"), at Caddyfile:12`},
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
		var p ruleParser
		err := p.rate("rate", text)
		if got := float64(p.Limit.Tokens) / p.Limit.Per.Seconds(); err != nil || got != want {
			t.Errorf("%s is %v tokens a second, want %v (%v)", text, got, want, err)
		}
	}
}

func TestErrorsOfAPolicyHaveTheirPath(t *testing.T) {
	rule := func(fields string) string {
		return `{"policy": {"name": "r", ` + fields +
			`, "algorithm_config": {"tokens_per_second": 1, "burst": 1}}}`
	}
	for _, c := range []struct{ handler, want string }{
		{`{}`, `limiter "default": want either policy or policy_file`},
		{`{"polices": {}}`, `unknown field "polices"`},
		{rule(`"limit_keys": ["jwt:sub"]`), "limit_keys[0] needs claims"},
		{rule(`"limit_keys": [], "match": {"matcher:lost": true}`),
			`match["matcher:lost"] must be ip:address`},
		{rule(`"limit_keys": ["{client_ip}"]`),
			"limit_keys[0] {client_ip} is a name for Caddyfiles: want {http.vars.client_ip}"},
		{rule(`"limit_keys": [], "match": {"{http.request.ip}": "::1"}`),
			`match["{http.request.ip}"] {http.request.ip} is not a placeholder of Caddy`},
		{`{"policy_file": "/-", "caddyfile": "Caddyfile:3"}`,
			`limiter "default": open /-: no such file or directory, at Caddyfile:3`},
		{`{"policy": {}, "redis": {"address": "{env.NO_SUCH_REDIS}"}}`, "redis: address: "},
		{`{"policy": {}, "matchers": {"api": [{"lost": []}]}}`, `matchers "api": `},
		{`{"max_keys": -1, "policy": {"name": "r", "limit_keys": [],
			"algorithm_config": {"tokens_per_second": 1, "burst": 1}}}`, "MaxKeys"},
	} {
		config := mustAdapt(t, ":80 {\nrespond ok\n}")
		var handler map[string]any
		if err := json.Unmarshal([]byte(c.handler), &handler); err != nil {
			t.Fatal(err)
		}
		handler["handler"] = "token_bucket"
		at(config, "apps", "http", "servers", "srv0")["routes"] = []any{
			map[string]any{"handle": []any{handler}},
		}
		wantError(t, config, c.want)
	}
}
