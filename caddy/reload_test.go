package tokenbucket

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// A reload that changes only the look of responses, or how many may wait, keeps the buckets.
func TestANewLookKeepsTheBuckets(t *testing.T) {
	rule := perHour("r", "8", "key none")
	s := start(t, site("api", rule))
	s.want(200).fields(t, "RateLimit-Remaining: 7")
	for _, tt := range []struct{ option, field string }{
		{"policy_field", `RateLimit-Policy: "r";q=8;w=28800`},
		{"x_ratelimit", "X-RateLimit-Remaining: 5"},
		{"reason_field X-Why", "RateLimit-Policy:"}, // not any more
		{"shared_secret s", "RateLimit-Remaining: 3"},
		{"max_waiting 9", "RateLimit-Remaining: 2"},
		{"fields refused", "RateLimit-Remaining:"},
		{"", "RateLimit-Remaining: 0"},
	} {
		s.load(site("api", tt.option+"\n"+rule))
		s.want(200).fields(t, tt.field)
	}
	s.load(site("api", "reason_field X-Why\n"+rule))
	s.want(429).fields(t, "X-Why: token_bucket_exceeded")
}

// A rule keeps its bucket, and a larger burst gives no tokens.
func TestAReloadReadsThePolicyFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "policy.json")
	write := func(burst int) (caddyfile string) {
		text := fmt.Sprintf(`{"name": "r", "limit_keys": ["ip:address"],
			"algorithm_config": {"tokens_per_second": 0.001, "burst": %d}}`, burst)
		writeFile(t, name, text)
		return site("", "policy_file "+name+"\n")
	}
	s := start(t, write(2))
	s.want(200)
	s.load(write(9))
	s.want(200).fields(t, "RateLimit-Limit: 9", "RateLimit-Remaining: 0")
	s.want(429)
}

func TestAReloadOfMatchers(t *testing.T) {
	rule := func(path string) string { return site("", perHour("r", "3", "key none\nmatch "+path)) }
	s := start(t, rule("/a"))
	s.want(200, "/a").fields(t, "RateLimit-Remaining: 2")
	s.load(rule("/b"))
	s.want(200, "/a").fields(t, "RateLimit-Remaining:")
	s.want(200, "/b").fields(t, "RateLimit-Remaining: 1")
}

// The policy in force stays if Caddy rejects the new configuration, whatever the stage. Caddy also
// finishes some work after it says that a configuration has started, such as to load another one.
func TestAFailedReloadChangesNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	handler := func(h map[string]any) map[string]any {
		return map[string]any{
			"routes": []any{map[string]any{"handle": []any{h}}}, "listen": []string{"127.0.0.1:0"},
		}
	}
	for name, c := range map[string]struct{ other, admin map[string]any }{
		"a limiter": {other: handler(map[string]any{"handler": "token_bucket",
			"policy_file": "/-"})},
		"another handler": {other: handler(map[string]any{"handler": "missing"})},
		"the start":       {other: map[string]any{"listen": []string{taken.Addr().String()}}},
		"after the start": {admin: map[string]any{"disabled": true, "config": map[string]any{
			"persist": false, "load": map[string]any{"module": "http", "url": none.URL},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			rule := func(path string) string {
				return site("api", perHour("r", "3", "key none\nmatch "+path))
			}
			s := start(t, rule("/a"))
			s.want(200, "/a")
			config := mustAdapt(t, rule("/b"))
			if c.other != nil {
				at(config, "apps", "http", "servers")["other"] = c.other
			} else {
				config["admin"] = c.admin
			}
			if err := s.loadConfig(config); err == nil {
				t.Fatal("the reload succeeded")
			}
			s.want(200, "/b").fields(t, "RateLimit-Limit:")
			s.want(200, "/a").fields(t, "RateLimit-Limit: 3")
			s.want(200, "/a")
			s.want(429, "/a")
			if n, _ := limiters.References(poolKey{"api", "{}"}); n != 1 {
				t.Errorf("%d references to the limiter, want 1", n)
			}
		})
	}
}

func TestALimiterEndsWithItsLastConfiguration(t *testing.T) {
	s := start(t, site("api", perHour("r", "1", "key none")))
	s.want(200)
	s.want(429)
	s.load(site("", perHour("r", "1", "key none")))
	if _, ok := limiters.References(poolKey{"api", "{}"}); ok {
		t.Error("the limiter is still there")
	}
	s.want(200)
	s.load(site("", "max_keys 10\n"+perHour("r", "1", "key none")))
	s.want(200) // other settings, so another limiter
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	limiters.Range(func(key, _ any) bool {
		t.Errorf("%v is still there", key)
		return true
	})
}

// Directives with the same name share a limiter. Each one without a name has its own, which a
// reload keeps.
func TestNamesOfLimiters(t *testing.T) {
	sites := func(burst, more string) string {
		rule := "{\n" + perHour("r", burst, "key none") + "}\nrespond ok\n}\n"
		text := "(limit) {\ntoken_bucket " + rule + "&(named) {\nimport limit\n}\n" +
			"http://c.example {\ninvoke named\n}\n"
		for _, host := range []string{"e", "f"} {
			text += "http://" + host + ".example {\ntoken_bucket api " + rule
		}
		for _, host := range strings.Fields("a b " + more) {
			text += "http://" + host + ".example {\nimport limit\n}\n"
		}
		return text
	}
	s := start(t, sites("1", ""))
	for _, host := range []string{"a", "b", "c", "e"} {
		s.want(200, "Host: "+host+".example")
	}
	s.load(sites("2", "d"))
	for _, host := range []string{"a", "b", "c", "e", "f"} {
		s.want(429, "Host: "+host+".example")
	}
	s.want(200, "Host: d.example")
}

func TestConflictingPoliciesAreAnError(t *testing.T) {
	for _, other := range []string{
		"{\n" + perHour("r", "2", "key none") + "}\n",
		"{\nfields refused\n" + perHour("r", "1", "key none") + "}\n",
		"{\n" + perHour("r", "1", "key none\nmatch /api/*") + "}\n",
	} {
		config := mustAdapt(t, "http://a.example {\ntoken_bucket api {\n"+perHour("r", "1", "key none")+
			"}\n}\nhttp://b.example {\ntoken_bucket api "+other+"}\n")
		wantError(t, config, "another name, at Caddyfile:2, at Caddyfile:11")
	}
	config := mustAdapt(t, "(limit) {\ntoken_bucket api {\n"+perHour("r", "{args[0]}", "key none")+
		"}\n}\nhttp://a.example {\nimport limit 1\n}\nhttp://b.example {\nimport limit 2\n}\n")
	wantError(t, config, "at Caddyfile:2 import chain ['Caddyfile:11 (import limit)'], "+
		"at Caddyfile:2 import chain ['Caddyfile:14 (import limit)']")
}
