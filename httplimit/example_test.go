package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
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

// A handler that has checked the token of a request passes its claims to the limiter.
func ExampleContextWithClaims() {
	limiter, err := httplimit.New(httplimit.Rules(httplimit.Rule{
		Name:      "per-user",
		Keys:      []string{"jwt:sub"},
		OnMissing: httplimit.Reject,
		Limit:     tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour},
	}))
	if err != nil {
		panic(err)
	}
	limited := limiter.Middleware(hello)
	authenticate := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, ok := r.BasicAuth() // here the application checks the password or the token
		if ok {
			claims := map[string]any{"sub": user}
			r = r.WithContext(httplimit.ContextWithClaims(r.Context(), claims))
		}
		limited.ServeHTTP(w, r)
	})

	for _, user := range []string{"ann", "ann", "bob", ""} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if user != "" {
			r.SetBasicAuth(user, "secret")
		}
		w := httptest.NewRecorder()
		authenticate.ServeHTTP(w, r)
		fmt.Println(user, w.Code)
	}
	// Output:
	// ann 200
	// ann 429
	// bob 200
	//  400
}

// Behind a proxy, the key is the address that the proxy reports. No other client is believed.
func ExampleWithClientAddress() {
	limiter := httplimit.PerAddress(1, 0.001, httplimit.WithClientAddress(httplimit.ClientAddress{
		Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}))
	handler := limiter.Middleware(hello)

	for _, from := range []struct{ peer, forwarded string }{
		{"10.0.0.1:1234", "203.0.113.7"},
		{"10.0.0.2:1234", "203.0.113.7"},              // the same client
		{"10.0.0.1:1234", "203.0.113.7, 203.0.113.8"}, // a client that invents the first address
		{"203.0.113.9:1234", "203.0.113.7"},           // a client without the proxy
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = from.peer
		r.Header.Set("X-Forwarded-For", from.forwarded)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 429
	// 200
	// 200
}

// Wrong passwords count, and right ones do not. The office is not limited.
func Example_wrongPasswords() {
	policy, err := httplimit.ParsePolicy([]byte(`{
		"name": "log-in", "limit_keys": ["ip:address"],
		"except": [{ "ip:address": ["198.51.100.0/24"] }],
		"algorithm_config": { "tokens_per_second": 0.01, "burst": 2,
			"cost_source": "response:status", "status_costs": { "401": 1, "2xx": 0 } } }`))
	if err != nil {
		panic(err)
	}
	limiter, err := httplimit.New(policy)
	if err != nil {
		panic(err)
	}
	logIn := limiter.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	for _, from := range []string{"192.0.2.1:1234", "198.51.100.7:1234"} {
		for _, password := range []string{"secret", "guess", "secret", "guess", "secret"} {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.RemoteAddr = from
			r.SetBasicAuth("ada", password)
			w := httptest.NewRecorder()
			logIn.ServeHTTP(w, r)
			fmt.Print(w.Code, " ")
		}
	}
	// Output:
	// 200 401 200 401 429 200 401 200 401 200
}
