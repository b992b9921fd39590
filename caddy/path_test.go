package tokenbucket

import "testing"

// The rule sees the path as the handlers after it do.
func TestTheRuleSeesTheRewrittenPath(t *testing.T) {
	s := start(t, "http://:80 {\nrewrite /old/* /new{uri}\nrewrite /gone /elsewhere\ntoken_bucket {\n"+
		perHour("new", "1", "key none\npath /new/*")+
		perHour("gone", "1", "key none\npath /gone")+"}\nrespond {uri}\n}")
	if w := s.want(200, "/old/x"); w.body != "/new/old/x" {
		t.Error(w.body)
	}
	s.want(429, "/new/y")
	s.want(200, "/gone")
	s.want(200, "/gone")
}

func TestHandlePathStripsThePrefixFirst(t *testing.T) {
	s := start(t, "http://:80 {\nhandle_path /api/* {\ntoken_bucket {\n"+
		perHour("users", "1", "key none\npath /users")+
		perHour("whole", "1", "key none\npath /api/users")+"}\nrespond ok\n}\nrespond other\n}")
	s.want(200, "/api/users")
	s.want(429, "/api/users")
	s.want(200, "/users") // another route
	// The matcher of the directive sees the path of the request.
	s = start(t, "http://:80 {\ntoken_bucket /api/* {\n"+perHour("api", "1", "key none")+
		"}\nhandle_path /api/* {\nrespond ok\n}\n}")
	s.want(200, "/api/users")
	s.want(429, "/api/other")
}

// Caddy's own matcher ignores the letter case, so /LOGIN reaches the handler of /login.
func TestTheRuleIgnoresLetterCaseAsMatchersDo(t *testing.T) {
	s := start(t, "http://:80 {\ntoken_bucket {\n"+
		perHour("login", "1", "key none\npath /Login")+
		perHour("api", "1", "key none\npath /api/*")+
		"}\nhandle /login {\nrespond login\n}\nhandle /API/* {\nrespond api\n}\nrespond other\n}")
	if w := s.want(200, "/LOGIN"); w.body != "login" {
		t.Error(w.body)
	}
	for _, path := range []string{"/login", "/lOGIN", "/%4cogin", "//Login", "/LOGIN"} {
		s.want(429, path)
	}
	if w := s.want(200, "/Api/x"); w.body != "api" {
		t.Error(w.body)
	}
	s.want(429, "/api/x")
	s.want(429, "/%41pI/X")
}

func TestSpellingsOfAPath(t *testing.T) {
	s := start(t, "http://:80 {\ntoken_bucket {\n"+perHour("login", "2", "key none\npath /login")+
		"}\nrespond ok\n}")
	s.want(200, "/login")
	s.want(200, "/%6cogin")
	s.want(429, "//login")
	s.want(429, "/x/../login")
	s.want(429, "/x/%2e%2e/login")
	s.want(400, "/..%2flogin")
	s.want(400, "/x/..;/login")
}
