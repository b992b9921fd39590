package tokenbucket

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// perHour is a rule whose buckets do not refill while a test runs.
func perHour(name string, burst, lines string) string {
	return "rule " + name + " {\nrate 1/h\nburst " + burst + "\n" + lines + "\n}\n"
}

func TestARefusalHasFieldsAndAProblemDocument(t *testing.T) {
	s := start(t, "http://:80 {\ntoken_bucket {\n"+perHour("addresses", "2", "key {client_ip}")+
		"}\nrespond ok\n}")
	if w := s.want(200); w.body != "ok" {
		t.Error(w.body)
	}
	s.want(200).fields(t, "RateLimit-Limit: 2", "RateLimit-Remaining: 0")
	w := s.want(429)
	w.fields(t, "Content-Type: application/problem+json", "RateLimit-Remaining: 0",
		"X-Fairvisor-Reason:", "Cache-Control: no-store")
	var problem struct {
		Status   int
		Violated []string `json:"violated-policies"`
	}
	if err := json.Unmarshal([]byte(w.body), &problem); err != nil || problem.Status != 429 ||
		len(problem.Violated) != 1 || problem.Violated[0] != "addresses" {
		t.Errorf("%v %s", err, w.body)
	}
	if w := s.want(429, "HEAD"); w.body != "" {
		t.Errorf("HEAD has a body: %q", w.body)
	}
}

func TestFields(t *testing.T) {
	s := start(t, "http://:80 {\ntoken_bucket {\nfields refused\nreason_field X-Why\npolicy_field\n"+
		"x_ratelimit\n"+perHour("r", "1", "key none")+"}\nrespond ok\n}")
	s.want(200).fields(t, "RateLimit-Limit:", "X-RateLimit-Limit:")
	s.want(429).fields(t, "RateLimit-Limit: 1", "X-RateLimit-Limit: 1", "X-Why: token_bucket_exceeded",
		`RateLimit-Policy: "r";q=1;w=3600`)
}

// Without header_down, clients would see fields twice that may be there once.
func TestFieldsOfTheUpstream(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit-Limit", "100")
		w.Header().Set("RateLimit", `"upstream";r=99;t=1`)
	}))
	defer upstream.Close()
	for _, c := range []struct{ directive, proxy, want string }{
		{"", "", "2, 100"},
		{"", "header_down -RateLimit*", "2"},
		{"fields refused\n", "", "100"},
	} {
		s := start(t, "http://:80 {\ntoken_bucket {\n"+c.directive+perHour("r", "2", "key none")+
			"}\nreverse_proxy "+upstream.URL+" {\n"+c.proxy+"\n}\n}")
		s.want(200).fields(t, "RateLimit-Limit: "+c.want)
	}
}

// Two directives are two limiters. The fields have the rules of both.
func TestTwoDirectives(t *testing.T) {
	s := start(t, "http://:80 {\ntoken_bucket a {\n"+perHour("first", "5", "key none")+
		"}\ntoken_bucket b {\n"+perHour("second", "1", "key none")+"}\nrespond ok\n}")
	s.want(200).fields(t, `RateLimit: "first";r=4;t=14400, "second";r=0;t=3600`)
	s.want(429)
	if st := s.stats("a")[0]; st.Granted != 2 {
		t.Errorf("the first limiter has granted %d requests, want 2", st.Granted)
	}
}

func TestPlaceholdersInTheAccessLog(t *testing.T) {
	s := start(t, "http://:80 {\nlog\nlog_append limit {http.token_bucket.rule}\ntoken_bucket {\n"+
		perHour("r", "1", "key none")+"}\nrespond ok\n}")
	s.want(200)
	s.want(429)
	if n := len(s.logged(`"limit":"r"`)); n != 1 {
		t.Errorf("%d lines have the rule, want 1", n)
	}
}

// An error route answers if it would handle the refusal. Otherwise the problem document does.
func TestErrorRoutes(t *testing.T) {
	const problem = "application/problem+json"
	for _, c := range []struct{ name, routes, other, contentType, body string }{
		{name: "none", contentType: problem, body: "Quota exceeded"},
		{
			name: "all errors", contentType: "text/plain; charset=utf-8",
			routes: `handle_errors {
				respond "{err.status_code} {http.token_bucket.rule} {http.token_bucket.key}"
			}`,
			body: "429 addresses ip:address=127.0.0.1",
		}, {
			name: "429", contentType: "application/json",
			routes: `handle_errors 429 {
				respond "{http.token_bucket.problem}"
			}`,
			body: "violated-policies",
		}, {
			name: "retry after", contentType: "text/plain; charset=utf-8",
			routes: `handle_errors 4xx {
				respond "in {http.token_bucket.retry_after} s: {err.message}"
			}`,
			body: " s: limiter default: rule addresses has too few tokens left",
		}, {
			name: "404", contentType: problem, body: "Quota exceeded",
			routes: "handle_errors 404 {\nrespond lost\n}",
		}, {
			name: "another path", contentType: problem, body: "Quota exceeded",
			routes: "handle_errors {\nrespond /other lost\n}",
		}, {
			name: "another site", contentType: problem, body: "Quota exceeded",
			other: "http://other.example {\nhandle_errors {\nrespond lost\n}\n}",
		}, {
			name: "the path before a rewrite", contentType: "text/plain; charset=utf-8", body: "mine",
			routes: "rewrite * /rewritten\nhandle_errors {\nrespond / mine\n}",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, "http://site.example {\ntoken_bucket {\n"+
				perHour("addresses", "1", "key {client_ip}")+"}\nrespond ok\n"+c.routes+"\n}\n"+c.other)
			s.want(200, "Host: site.example")
			w := s.want(429, "Host: site.example")
			if !strings.Contains(w.body, c.body) {
				t.Errorf("the body is %s, want %s", w.body, c.body)
			}
			w.fields(t, "Content-Type: "+c.contentType, "RateLimit-Remaining: 0")
			if w.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		})
	}
}

// No route handles the errors of an error route, so a limiter in one answers itself.
func TestALimiterInAnErrorRoute(t *testing.T) {
	s := start(t, "http://:80 {\nerror 404\nhandle_errors {\ntoken_bucket {\n"+
		perHour("errors", "1", "key none")+"}\nrespond lost\n}\n}")
	if w := s.want(404); w.body != "lost" {
		t.Error(w.body)
	}
	w := s.want(429)
	w.fields(t, "Content-Type: application/problem+json")
	if !strings.Contains(w.body, "Rule errors has too few tokens") {
		t.Error(w.body)
	}
}

// The response that is intercepted leaves its fields.
func TestALimiterForInterceptedResponses(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("lost"))
	}))
	defer upstream.Close()
	s := start(t, "http://:80 {\nintercept {\n@lost status 404\nhandle_response @lost {\n"+
		"token_bucket {\n"+perHour("errors", "1", "key none")+"}\nrespond lost 404\n}\n}\n"+
		"reverse_proxy "+upstream.URL+"\n}")
	s.want(404)
	w := s.want(429)
	w.fields(t, "Content-Encoding:")
	if !strings.Contains(w.body, "Rule errors has too few tokens") {
		t.Error(w.body)
	}
}

func TestPlaceholdersAreKeys(t *testing.T) {
	s := start(t, "http://:80 {\ntoken_bucket {\n"+
		perHour("r", "1", "key {http.request.uri.path.0}:{http.request.method} {header.X-Tenant}")+
		"}\nrespond ok\n}")
	s.want(200, "/a", "X-Tenant: 1")
	s.want(429, "/a/x", "X-Tenant: 1")
	s.want(200, "/a", "POST", "X-Tenant: 1")
	s.want(200, "/b", "X-Tenant: 1")
	s.want(200, "/a", "X-Tenant: 2")
	for range 3 {
		s.want(200, "/a") // the rule does not apply without a tenant
	}
}

// Text with a placeholder that has no value is a missing key, as a part without a value is.
func TestTextWithAMissingPlaceholder(t *testing.T) {
	rule := perHour("r", "1", "key {http.auth.user.id}/{http.request.method}")
	s := start(t, "http://:80 {\ntoken_bucket {\n"+rule+"}\nrespond ok\n}")
	s.want(200)
	s.want(200)
	rule = perHour("r", "1", "key {http.auth.user.id}/{http.request.method}\non_missing reject")
	s = start(t, "http://:80 {\ntoken_bucket {\n"+rule+"}\nrespond ok\n}")
	s.want(400)
}

func TestShadowAndMatch(t *testing.T) {
	s := start(t, "http://:80 {\ntoken_bucket {\n"+
		perHour("trial", "1", "key none\nshadow")+
		perHour("writes", "1", "key none\nmethod post put")+
		perHour("login", "1", "key none\npath /login /login/*")+
		perHour("plans", "1", "key none\nmatch header X-Plan free")+
		"}\nrespond ok\n}")
	for range 3 {
		s.want(200)
	}
	s.want(200, "PUT")
	s.want(429, "POST")
	s.want(200, "/login")
	s.want(429, "/login/x")
	s.want(200, "/loginx")
	s.want(200, "X-Plan: free")
	s.want(429, "X-Plan: free")
	s.want(200, "X-Plan: paid")
	if lines := s.logged("rule trial would have refused a request"); len(lines) == 0 {
		t.Error("the shadow rule is not in the log")
	}
}

// The limiter does not see what an error route writes.
func TestTheFieldsOfAnErrorRoute(t *testing.T) {
	s := start(t, "http://:80 {\ntoken_bucket {\n"+
		perHour("r", "9", "key none\ncost response:header:x-usage default 4 hide")+
		"}\nheader X-Usage 7\nerror 404\nhandle_errors {\nheader X-Usage 8\nrespond gone\n}\n}")
	s.want(404).fields(t, "X-Usage: 8", "RateLimit-Remaining: 5")
	s.want(429) // two are left, because the header before the error has the cost
}
