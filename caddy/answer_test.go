package tokenbucket

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An error route answers if it would handle the refusal. Otherwise the problem document does.
func TestErrorRoutes(t *testing.T) {
	const problem = "application/problem+json"
	for _, c := range []struct{ name, routes, other, contentType, body string }{
		{name: "none", contentType: problem, body: `"violated-policies":["addresses"]`},
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
			s := start(t, "http://site.example {\nlog\nlog_append limit {http.token_bucket.rule}\n"+
				"token_bucket {\n"+perHour("addresses", "1", "key {client_ip}")+"}\nrespond ok\n"+c.routes+
				"\n}\n"+c.other)
			s.want(200, "Host: site.example")
			w := s.want(429, "Host: site.example")
			if !strings.Contains(w.body, c.body) {
				t.Errorf("the body is %s, want %s", w.body, c.body)
			}
			w.fields(t, "Content-Type: "+c.contentType, "RateLimit-Remaining: 0")
			if w.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			if n := len(s.logged(`"limit":"addresses"`)); n != 1 {
				t.Errorf("%d lines of the access log have the rule, want 1", n)
			}
		})
	}
}

// No route handles the errors of an error route, so a limiter in one answers itself. A limiter in a
// route for responses that are intercepted leaves out the fields of the response.
func TestALimiterAfterTheHandlers(t *testing.T) {
	s := start(t, "http://:80 {\nerror 404\nhandle_errors {\ntoken_bucket {\n"+
		perHour("errors", "1", "key none")+"}\nrespond lost\n}\n}")
	if w := s.want(404); w.body != "lost" {
		t.Error(w.body)
	}
	s.want(429).fields(t, "Content-Type: application/problem+json")
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("lost"))
	}))
	defer upstream.Close()
	s = start(t, "http://:80 {\nintercept {\n@lost status 404\nhandle_response @lost {\n"+
		"token_bucket {\n"+perHour("errors", "1", "key none")+"}\nrespond lost 404\n}\n}\n"+
		"reverse_proxy "+upstream.URL+"\n}")
	s.want(404)
	s.want(429).fields(t, "Content-Encoding:", "Content-Type: application/problem+json")
}
