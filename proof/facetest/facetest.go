// Package facetest has the tests that every face of httplimit passes: a middleware, a proxy, a
// module of a server, interceptors. They prove that a face lets a policy through, with its buckets
// in memory or in Redis. The tests of httplimit prove what a policy does.
package facetest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Face is a face under test.
type Face struct {
	// Open starts the face with a policy in JSON, whose buckets are in memory or in the Redis server
	// of this address, and are full. It returns a function that sends a request through the face, or
	// nil if the face cannot have the policy.
	Open    func(t *testing.T, policy, redis string) func(Request) Answer
	Redis   bool  // the face can have its buckets there
	Without costs // that the face does not have
}

// costs are costs in responses.
type costs int

// Costs that a face may be without.
const (
	HeaderAndBody costs = iota + 1 // in the header or the body of a response
	Responses                      // in any part of one, the status included
)

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

// step is a request with fields such as "X-User: 1, X-Tenant: 1", or with a path instead, and its
// answer.
type step struct {
	request string
	status  int
	left    string // RateLimit-Remaining, or - if it depends on the time between two requests
}

// Run tests a face with its buckets in memory, and then in Redis if it can have them there.
func Run(t *testing.T, f Face) {
	none := func(*testing.T) string { return "" }
	if !f.Redis {
		f.run(t, none)
		return
	}
	t.Run("memory", func(t *testing.T) { f.run(t, none) })
	t.Run("Redis", func(t *testing.T) {
		f.run(t, func(t *testing.T) string { return redistest.Start(t).Addr })
	})
}

func (f Face) run(t *testing.T, redis func(*testing.T) (address string)) {
	for _, c := range cases {
		if c.costs != 0 && c.costs <= f.Without {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			send := f.Open(t, c.policy, redis(t))
			if send == nil {
				t.Skip("the face cannot have the policy")
			}
			for i, s := range c.steps {
				a := send(s.parsed())
				if a.Status != s.status {
					t.Fatalf("request %d %q: status %d, want %d", i, s.request, a.Status, s.status)
				}
				if left := a.Header.Get("RateLimit-Remaining"); left != s.left && s.left != "-" {
					t.Errorf("request %d %q: %q left, want %q", i, s.request, left, s.left)
				}
				retry, err := strconv.Atoi(a.Header.Get("Retry-After"))
				if (err == nil) != (s.status == 429) || err == nil && retry < c.retry {
					t.Errorf("request %d %q: Retry-After is %d, %v, want %d", i, s.request, retry, err, c.retry)
				}
			}
		})
	}
}

func (s *step) parsed() Request {
	if strings.HasPrefix(s.request, "/") {
		return Request{s.request, http.Header{}}
	}
	r := Request{PathA, http.Header{}}
	for line := range strings.SplitSeq(s.request, ", ") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			r.Header.Add(name, value)
		}
	}
	return r
}

// rule is a rule with these keys, fields of its configuration such as a burst, and other fields. A
// bucket gets a token in a thousand seconds, so a test may take its time.
func rule(name, keys, config, more string) string {
	return `{"name": "` + name + `", "limit_keys": [` + keys + `], ` + more +
		`"algorithm_config": {"tokens_per_second": 0.001, ` + config + `}}`
}

func rules(more string, all ...string) string {
	return `{` + more + `"rules": [` + strings.Join(all, ", ") + `]}`
}

const (
	byKey, byUser, byTenant = `"header:x-key"`, `"header:x-user"`, `"header:x-tenant"`

	user1, user2   = "X-User: 1, X-Tenant: 1", "X-User: 2, X-Tenant: 1"
	other1, other2 = "X-User: 1, X-Tenant: 2", "X-User: 2, X-Tenant: 2"
)

var cases = []struct {
	name   string
	policy string
	costs  costs
	retry  int // seconds: the least Retry-After
	steps  []step
}{
	{
		name:   "a cookie as a key",
		policy: rule("r", `"cookie:sid"`, `"burst": 2`, `"on_missing": "reject", `),
		steps: []step{
			{"Cookie: x=1; sid=a", 200, "1"}, {"Cookie: sid=a", 200, "0"}, {"Cookie: sid=a", 429, "0"},
			{"Cookie: sid=b", 200, "1"}, {"Cookie: sid=b; sid=c", 400, ""}, {"Cookie: SID=b", 400, ""},
		},
	}, {
		name: "all rules are charged or none",
		policy: rules("", rule("user", byUser, `"burst": 3`, ""),
			rule("tenant", byTenant, `"burst": 2`, "")),
		steps: []step{
			{user1, 200, "1"}, {user1, 200, "0"}, {user1, 429, "0"}, // takes nothing of the user
			{other1, 200, "0"}, {other1, 429, "0"}, // takes nothing of the tenant
			{other2, 200, "0"},
		},
	}, {
		name:   "a key that is missing or repeated",
		policy: rule("r", byKey, `"burst": 2`, `"on_missing": "reject", `),
		steps: []step{
			{"", 400, ""}, {"X-Key: a, X-Key: a", 400, ""}, {"X-Key: a, X-Key: b", 400, ""},
			{"X-Key: a", 200, "1"},
		},
	}, {
		name:   "the client is the peer, whatever it says",
		policy: rule("r", `"ip:address"`, `"burst": 2`, ""),
		steps: []step{
			{"X-Forwarded-For: 203.0.113.195, Forwarded: for=203.0.113.195", 200, "1"},
			{"X-Real-Ip: 203.0.113.196, True-Client-Ip: 203.0.113.196", 200, "0"},
			{"Cf-Connecting-Ip: 203.0.113.197, X-Client-Ip: 203.0.113.197", 429, "0"},
		},
	}, {
		name: "a selector and sets of rules",
		policy: `{"bundle_version": 1, "policies": [{"id": "a", "spec": ` +
			rules(`"selector": {"pathExact": "`+PathA+`"}, `, rule("r", "", `"burst": 1`, "")) +
			`}, {"id": "b", "spec": ` +
			rules(`"selector": {"pathExact": "`+PathB+`"}, `, rule("r", "", `"burst": 2`, "")) + `}]}`,
		steps: []step{
			{"", 200, "0"}, {"", 429, "0"}, {PathB, 200, "1"}, {PathB, 200, "0"}, {PathB, 429, "0"},
		},
	}, {
		name: "match, and the rest",
		policy: rules("", rule("free", "", `"burst": 1`, `"match": {"header:x-plan": "free"}, `),
			rule("rest", "", `"burst": 2`, "")),
		steps: []step{
			{"X-Plan: free", 200, "0"}, {"X-Plan: free", 429, "0"}, {"X-Plan: paid", 200, "1"},
			{"", 200, "0"}, {"", 429, "0"},
		},
	}, {
		name: "exceptions of a rule and of the policy",
		policy: rules(`"except": [{"pathExact": "`+PathB+`", "methods": ["POST"]}], `,
			rule("tight", "", `"burst": 1`, `"except": [{"pathExact": "`+PathA+`"}], `),
			rule("wide", "", `"burst": 2`, "")),
		steps: []step{
			{"", 200, "1"}, {PathB, 200, ""}, {"", 200, "0"}, {"", 429, "0"}, {PathB, 200, ""},
		},
	}, {
		name: "tiers of a bucket, and weights",
		policy: rule("r", byKey, `"burst": 2, "cost_source": "header:x-weight", "max_cost": 9, "tiers": {
			"by": "header:x-plan", "limits": {"gold": {"tokens_per_second": 0.001, "burst": 8}}}`, ""),
		steps: []step{
			{"X-Key: a, X-Plan: gold, X-Weight: 2.5", 200, "5"},
			{"X-Key: a, X-Plan: gold, X-Weight: 6", 429, "0"},
			{"X-Key: a", 200, "1"}, // not more than its capacity
			{"X-Key: a, X-Plan: gold, X-Weight: 1", 200, "0"},
		},
	}, {
		name: "a shadow rule refuses nothing and does not block",
		policy: rules("", rule("trial", "", `"burst": 1`, `"mode": "shadow", "block": "10h", `),
			rule("r", byKey, `"burst": 2`, "")),
		steps: []step{
			{"X-Key: a", 200, "1"}, {"X-Key: a", 200, "0"}, {"X-Key: a", 429, "0"}, {"X-Key: b", 200, "1"},
			{"", 200, ""}, // lacks the key
		},
	}, {
		name: "a delay",
		policy: `{"name": "r", "limit_keys": [], "on_limit": "delay", "max_delay": "1h",
			"algorithm_config": {"tokens_per_second": 100, "burst": 100, "fixed_cost": 60}}`,
		steps: []step{{"", 200, "40"}, {"", 200, "-"}}, // the second waits for 20 tokens
	}, {
		name: "a refusal blocks each key that lacks the cost", retry: 36000,
		policy: rules("", rule("user", byUser, `"burst": 2`, `"block": "10h", `),
			rule("tenant", byTenant, `"burst": 3`, `"block": "20h", `)),
		steps: []step{
			{user1, 200, "1"}, {user1, 200, "0"}, {user1, 429, "0"}, // does not block the tenant
			{user2, 200, "0"}, {other1, 429, "0"}, {user2, 429, "0"}, {other2, 200, "0"},
		},
	}, {
		name: "classes leave a share of the bucket",
		policy: rule("r", "", `"burst": 5`, `"priority": {"by": "header:x-class", "keep": {
			"crawler": 0.6, "user": 0.2, "admin": 0}}, `),
		steps: []step{
			{"X-Class: crawler", 200, "1"}, {"", 200, "0"}, // as the last of the named ones
			{"X-Class: crawler", 429, "0"}, {"X-Class: other", 429, "0"}, {"X-Class: user", 200, "1"},
			{"X-Class: user, X-Class: admin", 400, ""}, {"X-Class: user", 200, "0"},
			{"X-Class: user", 429, "0"}, {"X-Class: admin", 200, "0"}, {"X-Class: admin", 429, "0"},
		},
	}, {
		name: "failures block", costs: Responses, retry: 36000,
		policy: rule("r", byUser, `"burst": 2, "cost_source": "response:status", "status_costs": {
			"401": 1, "UNAUTHENTICATED": 1, "2xx": 0, "OK": 0}`, `"block": "10h", `),
		steps: []step{
			{"X-User: 1, X-Status: 401", 401, "1"}, {"X-User: 1", 200, "0"},
			{"X-User: 1, X-Status: 401", 401, "0"}, {"X-User: 1", 429, "0"}, {"X-User: 1", 429, "0"},
			{"X-User: 2", 200, "1"},
		},
	}, {
		name: "a cost in the header of the response", costs: HeaderAndBody,
		policy: rule("r", "", `"burst": 10, "cost_source": "response:header:x-used", "default_cost": 4,
			"max_cost": 20`, ""),
		steps: []step{{"X-Used: 1", 200, "6"}, {"X-Used: 12", 200, "5"}, {"", 429, "0"}},
	}, {
		name: "a cost in the body of the response", costs: HeaderAndBody,
		policy: rule("r", "", `"burst": 11, "cost_source": "response:bytes", "default_cost": 1,
			"max_cost": 20`, ""),
		steps: []step{{"", 200, "10"}, {"", 200, "5"}, {"", 200, "0"}, {"", 429, "0"}},
	}, {
		name: "a cost by the status of the response", costs: Responses,
		policy: rule("r", "", `"burst": 4, "cost_source": "response:status", "status_costs": {
			"401": 2, "UNAUTHENTICATED": 2, "2xx": 0, "OK": 0, "4xx": 0.5, "NOT_FOUND": 0.5}`, ""),
		steps: []step{
			{"", 200, "3"}, {"X-Status: 401", 401, "3"}, {"", 200, "1"}, {"X-Status: 404", 404, "1"},
			{"", 200, "0"}, {"X-Status: 401", 401, "0"}, {"", 429, "0"},
		},
	},
}

// HTTP returns a face of HTTP. Start starts a server with a limiter in front of Application, and
// returns its URL.
func HTTP(start func(*testing.T, *httplimit.Limiter) (url string)) Face {
	return Face{Open: func(t *testing.T, policy, _ string) func(Request) Answer {
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

// DownStore is a store that cannot decide.
type DownStore struct{ httplimit.Store }

// TakeAll fails.
func (DownStore) TakeAll(context.Context, time.Time, []tb.Charge, []tb.Decision) (
	[]tb.Decision, bool, error,
) {
	return nil, false, errors.New("the store is down")
}
