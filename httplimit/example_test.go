package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, "hello")
})

func Example() {
	policy, err := httplimit.ParsePolicy([]byte(`{
		"name": "per-address", "limit_keys": ["ip:address"], "algorithm": "token_bucket",
		"algorithm_config": { "tokens_per_second": 0.001, "burst": 2 } }`))
	if err != nil {
		panic(err)
	}
	for _, w := range policy.Warnings() {
		fmt.Println(w)
	}
	limiter, err := httplimit.New(policy)
	if err != nil {
		panic(err)
	}
	handler := limiter.Middleware(hello)

	for range 3 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Remaining"))
	}
	// Output:
	// 200 1
	// 200 0
	// 429 0
}

// Each user has a bucket, whatever their addresses are. A user who was refused is forgiven.
func ExamplePerKey() {
	user := func(r *http.Request) string {
		name, _, _ := r.BasicAuth()
		return name
	}
	limiter := httplimit.PerKey(1, 0.001, user)
	handler := limiter.Middleware(hello)
	for range 3 {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth("ada", "secret")
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code)
		if w.Code == http.StatusTooManyRequests {
			fmt.Println(limiter.Reset("per-key", "key=ada"))
		}
	}
	// Output:
	// 200
	// 429
	// <nil>
	// 200
}

// A policy built in Go, with a key of the application's own.
func ExampleWithExtractor() {
	limiter, err := httplimit.New(
		httplimit.Rules(httplimit.Rule{
			Name:  "per-tenant",
			Keys:  []string{"tenant"},
			Limit: tb.Limit{Capacity: 20, Tokens: 100, Per: time.Minute},
		}),
		httplimit.WithExtractor("tenant", func(r *http.Request) string {
			return strings.TrimSuffix(r.Host, ".example.com")
		}))
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Host = "blue.example.com"
	w := httptest.NewRecorder()
	limiter.Middleware(hello).ServeHTTP(w, r)
	fmt.Println(w.Header().Get("RateLimit-Remaining"))
	fmt.Println(httplimit.FormatKey(limiter.Explain(r)[0].Key))
	// Output:
	// 19
	// tenant=blue
}

func ExampleWithContext() {
	limiter := httplimit.PerAddress(10, 5, httplimit.WithContext())
	hello := func(w http.ResponseWriter, r *http.Request) {
		d, _ := httplimit.FromContext(r.Context())
		fmt.Fprintf(w, "%s: %d of %d left", d.Rule, d.Remaining, d.Limit.Capacity)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	limiter.Middleware(http.HandlerFunc(hello)).ServeHTTP(w, r)
	fmt.Println(w.Body)
	// Output:
	// per-address: 9 of 10 left
}

func ExampleParsePolicy_errors() {
	_, err := httplimit.ParsePolicy([]byte(`{"rules": [
		{"name": "a", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rps": 10, "burst": 5}},
		{"name": "a", "limit_keys": ["header:"],
			"algorithm_config": {"rps": 10, "burst": 10, "brust": 5}}]}`))
	fmt.Println(err)
	// Output:
	// httplimit: policy:
	// rules[0].algorithm_config.burst must be >= tokens_per_second (got 5, want >= 10)
	// rules[1].algorithm_config.brust is an unknown field
	// rules[1].name must be unique (got "a" again)
	// rules[1].limit_keys[0] must be header:<name>, with a name of A-Z a-z 0-9 _ - (got "header:")
}

func ExampleLimiter_SetPolicy() {
	const policy = `{"name": "all", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": %s}}`
	first, err := httplimit.ParsePolicy([]byte(strings.Replace(policy, "%s", "5", 1)))
	if err != nil {
		panic(err)
	}
	limiter, err := httplimit.New(first)
	if err != nil {
		panic(err)
	}
	// The new policy takes effect with the next request. Rules that stay the same keep
	// their buckets.
	next, err := httplimit.ParsePolicy([]byte(strings.Replace(policy, "%s", "10", 1)))
	if err == nil {
		err = limiter.SetPolicy(next)
	}
	fmt.Println(err, limiter.Stats()[0].Limit.Capacity)
	// Output:
	// <nil> 10
}

// The application answers what is refused, with the status and the fields of the limiter.
func ExampleWithRefusal() {
	page := func(w http.ResponseWriter, _ *http.Request, refusal *httplimit.Refusal) {
		http.Error(w, "Please wait. "+refusal.Detail, refusal.Status)
	}
	limiter := httplimit.PerAddress(1, 0.001, httplimit.WithRefusal(page))
	handler := limiter.Middleware(hello)
	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 200 hello
	// 429 Please wait. Rule per-address has too few tokens left for this request, which costs 1.
}
