package tokenbucket

import (
	"strings"
	"testing"
)

// A rule applies to the requests that one of its matchers matches.
func TestMatchers(t *testing.T) {
	for _, c := range []struct{ name, match, other, other2 string }{
		{"a block", "match {\nmethod POST\npath /in/*\n}", "", "POST"},
		{"one line", "match header X-Plan free", "X-Plan: paid", ""},
		{"an expression", "match `{method} == 'POST' && path('/in/*')`", "POST", "/in/x"},
		{"a path", "match /in/*", "/out", "POST"},
		{"a name", "match @in", "/out", "POST"},
		{"not", "match {\nnot path /out\n}", "/out", "/out"},
		{"with other options", "path /in/*\nmatch method POST", "POST", "/in/x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, "http://:80 {\n@in path /in/*\ntoken_bucket {\n"+
				perHour("r", "1", "key none\n"+c.match)+"}\nrespond ok\n}")
			in := []string{"POST", "/in/x", "X-Plan: free"}
			s.want(200, in...)
			s.want(429, in...)
			for _, line := range []string{c.other, c.other2} {
				if line != "" {
					s.want(200, line)
				}
			}
		})
	}
}

func TestOneOfSeveralMatchers(t *testing.T) {
	s := start(t, "http://:80 {\ntoken_bucket {\n"+perHour("r", "2", "key none\nmatch /a\n"+
		"match {\nmethod POST\nheader X-Plan free\n}")+"}\nrespond ok\n}")
	s.want(200, "/a")
	s.want(200, "POST", "X-Plan: free")
	s.want(429, "/a")
	s.want(429, "POST", "X-Plan: free")
	s.want(200, "POST")
	s.want(200, "X-Plan: free")
}

// A key can have what a matcher has found.
func TestKeysFromMatchers(t *testing.T) {
	s := start(t, "http://:80 {\ntoken_bucket {\n"+perHour("r", "1",
		"key {re.tenant.1}\nmatch path_regexp tenant ^/tenants/([^/]+)")+"}\nrespond ok\n}")
	s.want(200, "/tenants/a/x")
	s.want(429, "/tenants/a/y")
	s.want(200, "/tenants/b")
	s.want(200, "/")
}

// The placeholders of map need a dot, because others are misspelled.
func TestKeysFromMap(t *testing.T) {
	s := start(t, "http://:80 {\nmap {header.X-Plan} {my.tier} {\nfree small\ndefault large\n}\n"+
		"token_bucket {\n"+perHour("r", "1", "key {my.tier}")+"}\nrespond ok\n}")
	s.want(200, "X-Plan: free")
	s.want(429, "X-Plan: free")
	s.want(200)
}

// A matcher that cannot decide fails the request, as in the routes of Caddy.
func TestAMatcherThatFails(t *testing.T) {
	s := start(t, "http://:80 {\ntoken_bucket {\n"+perHour("r", "9", "key none\n"+
		"match `{http.request.header.X-Number} == 1 / 0`")+"}\nrespond ok\nhandle_errors {\n"+
		"respond \"{err.message}\"\n}\n}")
	if w := s.want(500); !strings.Contains(w.body, "division by zero") {
		t.Error(w.body)
	}
}

// The error route of a matcher that fails may have matchers, too.
func TestAnErrorRouteAfterAMatcherThatFails(t *testing.T) {
	s := start(t, "http://:80 {\ntoken_bucket first {\n"+perHour("r", "9", "key none\n"+
		"match `{http.request.header.X-Number} == 1 / 0`")+"}\nrespond ok\nhandle_errors {\n"+
		"token_bucket second {\n"+perHour("r", "1", "key none\nmatch /a")+"}\n"+
		"respond {err.message}\n}\n}")
	if w := s.want(500, "/a"); !strings.Contains(w.body, "division by zero") {
		t.Error(w.body)
	}
	s.want(429, "/a")
}

// The matchers of a reload are in force with its policy, and a failed reload keeps the ones before.
func TestReloadsOfMatchers(t *testing.T) {
	rule := func(match string) string { return site("api", perHour("r", "3", "key none\n"+match)) }
	s := start(t, rule("match /a"))
	s.want(200, "/a").fields(t, "RateLimit-Remaining: 2")
	if err := s.load(rule("match /b")); err != nil {
		t.Fatal(err)
	}
	s.want(200, "/a").fields(t, "RateLimit-Remaining:")
	s.want(200, "/b").fields(t, "RateLimit-Remaining: 1") // the bucket stays
	config := s.config(rule("match /c"), "127.0.0.1:0")
	at(config, "apps", "http", "servers")["other"] = map[string]any{"listen": []string{"x:y:z"}}
	if err := s.run(config); err == nil {
		t.Fatal("the reload succeeded")
	}
	s.want(200, "/c").fields(t, "RateLimit-Remaining:")
	s.want(200, "/b").fields(t, "RateLimit-Remaining: 0")
}

// Caddy provisions a handler after the Caddyfile is JSON, which has the place of the directive.
func TestErrorsOfTheStartHaveTheirPlace(t *testing.T) {
	for directive, want := range map[string]string{
		"policy_file /does/not/exist": `limiter "default": open /does/not/exist: no such file or ` +
			"directory, at Caddyfile:3",
		"redis {env.NO_SUCH_REDIS}\n" + perHour("r", "1", "key none"): "at Caddyfile:2",
	} {
		config, err := adapt(":80 {\ntoken_bucket {\n" + directive + "\n}\n}")
		if err != nil {
			t.Fatal(err)
		}
		s := &server{t: t, log: t.TempDir() + "/log"}
		s.listen(config, "127.0.0.1:0")
		if err := s.run(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nthe error is %v, want %s", directive, err, want)
		}
	}
}
