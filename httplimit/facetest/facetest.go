// Package facetest has the tests that every face of httplimit passes: a middleware, a proxy, a
// module of a server, interceptors. They prove that a face lets a policy through, with its buckets
// in memory or in Redis. The tests of httplimit prove what a policy does.
package facetest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// Face is a face under test.
type Face struct {
	// Open starts the face with a policy in JSON, whose buckets are full. It returns a function
	// that sends a request through the face, or nil if the face cannot have the policy.
	Open func(t *testing.T, policy string) func(Request) Answer
	// WithoutResponses means that the face has no costs in responses, and WithStatuses that it has
	// those by status after all.
	WithoutResponses, WithStatuses bool
}

// Request is a request to the application behind a face.
type Request struct {
	// Path is PathA or PathB.
	Path string
	// Header has the fields of the request. The application copies the value of Used into the
	// header of its response. The status is the value of Status, or 200, and then the body is Body.
	Header http.Header
}

// Answer is what the client gets. A face of another protocol than HTTP returns the status that
// httplimit has for its code.
type Answer struct {
	Status int
	Header http.Header
}

// What the application behind a face serves.
const (
	PathA = "/facetest.Service/A"
	PathB = "/facetest.Service/B"
	Used  = "X-Used"

	Status = "X-Status"
	Body   = "hello"
)

// step is a request and its answer. Fields are lines as in "X-Key: a".
type step struct {
	fields []string
	status int
	left   string // RateLimit-Remaining
}

// unchecked is for an answer that depends on the time between two requests.
const unchecked = "-"

// Run tests a face. A face that can have its buckets in Redis runs it twice.
func Run(t *testing.T, f Face) {
	for _, c := range cases {
		if c.responses && f.WithoutResponses && (!c.statuses || !f.WithStatuses) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			send := f.Open(t, c.policy)
			if send == nil {
				t.Skip("the face cannot have the policy")
			}
			for i, s := range c.steps {
				r := Request{Path: PathA, Header: http.Header{}}
				for _, line := range s.fields {
					name, value, isField := strings.Cut(line, ": ")
					if isField {
						r.Header.Add(name, value)
					} else {
						r.Path = line
					}
				}
				a := send(r)
				s.check(t, i, a)
				if retry, err := strconv.Atoi(a.Header.Get("Retry-After")); err == nil && retry < c.retry {
					t.Errorf("request %d: Retry-After is %d, want at least %d", i, retry, c.retry)
				}
			}
		})
	}
}

func (s *step) check(t *testing.T, i int, a Answer) {
	t.Helper()
	if a.Status != s.status {
		t.Fatalf("request %d %q: status %d, want %d", i, s.fields, a.Status, s.status)
	}
	if left := a.Header.Get("RateLimit-Remaining"); left != s.left && s.left != unchecked {
		t.Errorf("request %d %q: %q left, want %q", i, s.fields, left, s.left)
	}
	if hasRetry := a.Header.Get("Retry-After") != ""; hasRetry != (s.status == 429) {
		t.Errorf("request %d %q: Retry-After is %q", i, s.fields, a.Header.Get("Retry-After"))
	}
	if used := a.Header.Get(Used); used != "" {
		t.Errorf("request %d %q: the client gets the cost %s, which is hidden", i, s.fields, used)
	}
}

// The buckets of the cases get a token in a thousand seconds, so a test may take its time.
var cases = []struct {
	name      string
	policy    string
	responses bool // costs are in responses
	statuses  bool // namely by status
	retry     int  // seconds: the least Retry-After
	steps     []step
}{
	{
		name: "each key has a bucket",
		policy: `{"name": "r", "limit_keys": ["header:x-key"], "algorithm_config": {
			"tokens_per_second": 0.001, "burst": 2}}`,
		steps: []step{
			{[]string{"X-Key: a"}, 200, "1"}, {[]string{"X-Key: a"}, 200, "0"},
			{[]string{"X-Key: a"}, 429, "0"}, {[]string{"X-Key: b"}, 200, "1"},
			{nil, 200, ""}, // lacks the key
		},
	}, {
		name: "a cookie as a key",
		policy: `{"name": "r", "limit_keys": ["cookie:sid"], "on_missing": "reject", "algorithm_config": {
			"tokens_per_second": 0.001, "burst": 2}}`,
		steps: []step{
			{[]string{"Cookie: x=1; sid=a"}, 200, "1"}, {[]string{"Cookie: sid=a"}, 200, "0"},
			{[]string{"Cookie: sid=a"}, 429, "0"}, {[]string{"Cookie: sid=b"}, 200, "1"},
			{[]string{"Cookie: sid=b; sid=c"}, 400, ""}, {[]string{"Cookie: SID=b"}, 400, ""},
		},
	}, {
		name: "all rules are charged or none",
		policy: `{"rules": [
			{"name": "user", "limit_keys": ["header:x-user"], "algorithm_config": {
				"tokens_per_second": 0.001, "burst": 3}},
			{"name": "tenant", "limit_keys": ["header:x-tenant"], "algorithm_config": {
				"tokens_per_second": 0.001, "burst": 2}}]}`,
		steps: []step{
			{[]string{"X-User: 1", "X-Tenant: 1"}, 200, "1"},
			{[]string{"X-User: 1", "X-Tenant: 1"}, 200, "0"},
			{[]string{"X-User: 1", "X-Tenant: 1"}, 429, "0"}, // takes nothing of the user
			{[]string{"X-User: 1", "X-Tenant: 2"}, 200, "0"},
			{[]string{"X-User: 1", "X-Tenant: 2"}, 429, "0"}, // takes nothing of the tenant
			{[]string{"X-User: 2", "X-Tenant: 2"}, 200, "0"},
		},
	}, {
		name: "a key that is missing or repeated",
		policy: `{"name": "r", "limit_keys": ["header:x-key"], "on_missing": "reject",
			"algorithm_config": {"tokens_per_second": 0.001, "burst": 2}}`,
		steps: []step{
			{nil, 400, ""}, {[]string{"X-Key: a", "X-Key: a"}, 400, ""},
			{[]string{"X-Key: a", "X-Key: b"}, 400, ""}, {[]string{"X-Key: a"}, 200, "1"},
		},
	}, {
		name: "the client is the peer, whatever it says",
		policy: `{"name": "r", "limit_keys": ["ip:address"], "algorithm_config": {
			"tokens_per_second": 0.001, "burst": 2}}`,
		steps: []step{
			{[]string{"X-Forwarded-For: 203.0.113.195", "Forwarded: for=203.0.113.195"}, 200, "1"},
			{[]string{"X-Real-Ip: 203.0.113.196", "True-Client-Ip: 203.0.113.196"}, 200, "0"},
			{[]string{"Cf-Connecting-Ip: 203.0.113.197", "X-Client-Ip: 203.0.113.197"}, 429, "0"},
		},
	}, {
		name: "a selector and sets of rules",
		policy: `{"bundle_version": 1, "policies": [
			{"id": "a", "spec": {"selector": {"pathExact": "` + PathA + `"}, "rules": [{"name": "r",
				"limit_keys": [], "algorithm_config": {"tokens_per_second": 0.001, "burst": 1}}]}},
			{"id": "b", "spec": {"selector": {"pathExact": "` + PathB + `"}, "rules": [{"name": "r",
				"limit_keys": [], "algorithm_config": {"tokens_per_second": 0.001, "burst": 2}}]}}]}`,
		steps: []step{
			{nil, 200, "0"}, {nil, 429, "0"}, {[]string{PathB}, 200, "1"}, {[]string{PathB}, 200, "0"},
			{[]string{PathB}, 429, "0"},
		},
	}, {
		name: "match, and the rest",
		policy: `{"rules": [
			{"name": "free", "limit_keys": [], "match": {"header:x-plan": "free"}, "algorithm_config": {
				"tokens_per_second": 0.001, "burst": 1}},
			{"name": "rest", "limit_keys": [], "algorithm_config": {
				"tokens_per_second": 0.001, "burst": 2}}]}`,
		steps: []step{
			{[]string{"X-Plan: free"}, 200, "0"}, {[]string{"X-Plan: free"}, 429, "0"},
			{[]string{"X-Plan: paid"}, 200, "1"}, {nil, 200, "0"}, {nil, 429, "0"},
		},
	}, {
		name: "exceptions of a rule and of the policy",
		policy: `{"except": [{"pathExact": "` + PathB + `", "methods": ["POST"]}], "rules": [
			{"name": "tight", "limit_keys": [], "except": [{"pathExact": "` + PathA + `"}],
				"algorithm_config": {"tokens_per_second": 0.001, "burst": 1}},
			{"name": "wide", "limit_keys": [], "algorithm_config": {
				"tokens_per_second": 0.001, "burst": 2}}]}`,
		steps: []step{
			{nil, 200, "1"}, {[]string{PathB}, 200, ""}, {nil, 200, "0"}, {nil, 429, "0"},
			{[]string{PathB}, 200, ""},
		},
	}, {
		name: "tiers of a bucket, and weights",
		policy: `{"name": "r", "limit_keys": ["header:x-key"], "algorithm_config": {
			"tokens_per_second": 0.001, "burst": 2, "cost_source": "header:x-weight", "max_cost": 9,
			"tiers": {"by": "header:x-plan", "limits": {"gold": {
				"tokens_per_second": 0.001, "burst": 8}}}}}`,
		steps: []step{
			{[]string{"X-Key: a", "X-Plan: gold", "X-Weight: 2.5"}, 200, "5"},
			{[]string{"X-Key: a", "X-Plan: gold", "X-Weight: 6"}, 429, "0"},
			{[]string{"X-Key: a"}, 200, "1"}, // not more than its capacity
			{[]string{"X-Key: a", "X-Plan: gold", "X-Weight: 1"}, 200, "0"},
		},
	}, {
		name: "a shadow rule refuses nothing",
		policy: `{"rules": [
			{"name": "trial", "limit_keys": [], "mode": "shadow", "algorithm_config": {
				"tokens_per_second": 0.001, "burst": 1}},
			{"name": "r", "limit_keys": ["header:x-key"], "algorithm_config": {
				"tokens_per_second": 0.001, "burst": 2}}]}`,
		steps: []step{
			{[]string{"X-Key: a"}, 200, "1"}, {[]string{"X-Key: a"}, 200, "0"},
			{[]string{"X-Key: a"}, 429, "0"},
		},
	}, {
		name: "a delay",
		policy: `{"name": "r", "limit_keys": [], "on_limit": "delay", "max_delay": "1h",
			"algorithm_config": {"tokens_per_second": 100, "burst": 100, "fixed_cost": 60}}`,
		steps: []step{{nil, 200, "40"}, {nil, 200, unchecked}}, // the second waits for 20 tokens
	}, {
		name: "a refusal blocks each key that lacks the cost", retry: 36000,
		policy: `{"rules": [
			{"name": "user", "limit_keys": ["header:x-user"], "block": "10h", "algorithm_config": {
				"tokens_per_second": 0.001, "burst": 2}},
			{"name": "tenant", "limit_keys": ["header:x-tenant"], "block": "20h", "algorithm_config": {
				"tokens_per_second": 0.001, "burst": 3}}]}`,
		steps: []step{
			{[]string{"X-User: 1", "X-Tenant: 1"}, 200, "1"},
			{[]string{"X-User: 1", "X-Tenant: 1"}, 200, "0"},
			{[]string{"X-User: 1", "X-Tenant: 1"}, 429, "0"}, // does not block the tenant
			{[]string{"X-User: 2", "X-Tenant: 1"}, 200, "0"},
			{[]string{"X-User: 1", "X-Tenant: 2"}, 429, "0"},
			{[]string{"X-User: 2", "X-Tenant: 1"}, 429, "0"},
			{[]string{"X-User: 2", "X-Tenant: 2"}, 200, "0"},
		},
	}, {
		name: "classes leave a share of the bucket",
		policy: `{"name": "r", "limit_keys": [], "priority": {"by": "header:x-class", "keep": {
			"crawler": 0.6, "user": 0.2, "admin": 0}}, "algorithm_config": {
				"tokens_per_second": 0.001, "burst": 5}}`,
		steps: []step{
			{[]string{"X-Class: crawler"}, 200, "1"}, {nil, 200, "0"}, // as the last of the named ones
			{[]string{"X-Class: crawler"}, 429, "0"}, {[]string{"X-Class: other"}, 429, "0"},
			{[]string{"X-Class: user"}, 200, "1"}, {[]string{"X-Class: user", "X-Class: admin"}, 400, ""},
			{[]string{"X-Class: user"}, 200, "0"}, {[]string{"X-Class: user"}, 429, "0"},
			{[]string{"X-Class: admin"}, 200, "0"}, {[]string{"X-Class: admin"}, 429, "0"},
		},
	}, {
		name: "a shadow rule does not block",
		policy: `{"name": "r", "limit_keys": [], "block": "10h", "mode": "shadow", "algorithm_config": {
			"tokens_per_second": 0.001, "burst": 1}}`,
		steps: []step{{nil, 200, ""}, {nil, 200, ""}, {nil, 200, ""}},
	}, {
		name: "failures block", responses: true, statuses: true, retry: 36000,
		policy: `{"name": "r", "limit_keys": ["header:x-user"], "block": "10h", "algorithm_config": {
			"tokens_per_second": 0.001, "burst": 2, "cost_source": "response:status", "status_costs": {
				"401": 1, "UNAUTHENTICATED": 1, "2xx": 0, "OK": 0}}}`,
		steps: []step{
			{[]string{"X-User: 1", Status + ": 401"}, 401, "1"}, {[]string{"X-User: 1"}, 200, "0"},
			{[]string{"X-User: 1", Status + ": 401"}, 401, "0"}, {[]string{"X-User: 1"}, 429, "0"},
			{[]string{"X-User: 1"}, 429, "0"}, {[]string{"X-User: 2"}, 200, "1"},
		},
	}, {
		name: "a cost in the header of the response", responses: true,
		policy: `{"name": "r", "limit_keys": [], "algorithm_config": {"tokens_per_second": 0.001,
			"burst": 10, "cost_source": "response:header:x-used", "default_cost": 4, "max_cost": 20,
			"hide_cost_header": true}}`,
		steps: []step{
			{[]string{Used + ": 1"}, 200, "6"}, {[]string{Used + ": 12"}, 200, "5"}, {nil, 429, "0"},
		},
	}, {
		name: "a cost in the body of the response", responses: true,
		policy: `{"name": "r", "limit_keys": [], "algorithm_config": {"tokens_per_second": 0.001,
			"burst": 11, "cost_source": "response:bytes", "default_cost": 1, "max_cost": 20}}`,
		steps: []step{{nil, 200, "10"}, {nil, 200, "5"}, {nil, 200, "0"}, {nil, 429, "0"}},
	}, {
		name: "a cost by the status of the response", responses: true, statuses: true,
		policy: `{"name": "r", "limit_keys": [], "algorithm_config": {"tokens_per_second": 0.001,
			"burst": 4, "cost_source": "response:status", "status_costs": {
				"401": 2, "UNAUTHENTICATED": 2, "2xx": 0, "OK": 0, "4xx": 0.5, "NOT_FOUND": 0.5}}}`,
		steps: []step{
			{nil, 200, "3"}, {[]string{Status + ": 401"}, 401, "3"}, {nil, 200, "1"},
			{[]string{Status + ": 404"}, 404, "1"}, {nil, 200, "0"}, {[]string{Status + ": 401"}, 401, "0"},
			{nil, 429, "0"},
		},
	},
}

// HTTP returns a face of HTTP. Start starts a server with a limiter in front of Application, and
// returns its URL.
func HTTP(start func(*testing.T, *httplimit.Limiter) (url string)) Face {
	return Face{Open: func(t *testing.T, policy string) func(Request) Answer {
		p, err := httplimit.ParsePolicy([]byte(policy))
		if err != nil {
			t.Fatal(err)
		}
		l, err := httplimit.New(p)
		if err != nil {
			t.Fatal(err)
		}
		url := start(t, l)
		return func(r Request) Answer { return Send(t, url, r) }
	}}
}

// Serve serves a handler until the test ends, and returns the URL.
func Serve(t *testing.T, h http.Handler) (url string) {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// Application is the application behind a face of HTTP.
func Application() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if used := r.Header.Get(Used); used != "" {
			w.Header().Set(Used, used)
		}
		if status, err := strconv.Atoi(r.Header.Get(Status)); err == nil {
			w.WriteHeader(status)
			return
		}
		_, _ = w.Write([]byte(Body))
	})
}

// Send sends a request to a server of HTTP.
func Send(t *testing.T, url string, r Request) Answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+r.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = r.Header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	// The end of a body comes after its settlement.
	_, err = io.Copy(io.Discard, response.Body)
	if closeErr := response.Body.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	return Answer{response.StatusCode, response.Header}
}
