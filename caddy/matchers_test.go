package tokenbucket

import (
	"strings"
	"testing"
)

// A rule applies to the requests that one of its matchers matches.
func TestMatchers(t *testing.T) {
	for _, c := range []struct{ name, match, other, other2 string }{
		{"a block", "match {\nmethod POST\npath /in/*\n}", "/in/x", "POST"},
		{"one line", "match header X-Plan free", "X-Plan: paid", "/in/x"},
		{"an expression", "match `{method} == 'POST' && path('/in/*')`", "POST", "/in/x"},
		{"a name", "match @in", "/out", "POST"},
		{"the first of two", "match /in/*\nmatch header X-Plan none", "/out", "X-Plan: free"},
		{"the second of two", "match /out\nmatch {\nmethod POST\npath /in/*\n}", "POST", "/in/x"},
		{"with other options", "path /in/*\nmatch method POST", "POST", "/in/x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, "http://:80 {\n@in path /in/*\ntoken_bucket {\n"+
				perHour("r", "1", "key none\n"+c.match)+"}\nrespond ok\n}")
			in := []string{"POST", "/in/x", "X-Plan: free"}
			s.want(200, in...)
			s.want(429, in...)
			s.want(200, c.other)
			s.want(200, c.other2)
		})
	}
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

// A matcher that cannot decide fails the request, as in the routes of Caddy. The error route may
// have matchers, too.
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

// A rule sees the path as the handlers after it do. Letter case does not matter, as for Caddy's own
// matchers.
func TestThePathOfARule(t *testing.T) {
	s := start(t, "http://:80 {\nrewrite /old/* /new{uri}\nhandle_path /api/* {\ntoken_bucket {\n"+
		perHour("users", "1", "key none\npath /Users")+
		perHour("whole", "1", "key none\npath /api/*")+"}\nrespond ok\n}\ntoken_bucket b {\n"+
		perHour("new", "1", "key none\npath /new/*")+"}\nrespond {uri}\n}")
	s.want(200, "/api/users")
	for _, path := range []string{"/api/USERS", "/api/%55sers", "/api//users"} {
		s.want(429, path)
	}
	if w := s.want(200, "/old/x"); w.body != "/new/old/x" {
		t.Error(w.body)
	}
	s.want(429, "/new/y")
}
