package ratelimit_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

func Example() {
	limiter := cas.NewTokenBucket(10, 5) // bursts of 10, then 5 a second, for each key

	for range 11 {
		d, err := limiter.Allow(context.Background(), "203.0.113.195")
		if err != nil {
			panic(err)
		}
		if !d.Allowed {
			fmt.Println("come back in", d.RetryAfter.Round(100*time.Millisecond))
		}
	}
	// Output:
	// come back in 200ms
}

func Example_handler() {
	limiter := cas.NewTokenBucket(2, 1)
	hello := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }

	handler := func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		if d, err := limiter.Allow(r.Context(), host); err == nil && !d.Allowed {
			seconds := int(math.Ceil(d.RetryAfter.Seconds()))
			w.Header().Set("Retry-After", strconv.Itoa(seconds))
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		hello(w, r)
	}

	for range 3 {
		w := httptest.NewRecorder()
		handler(w, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// 200 ""
	// 200 ""
	// 429 "1"
}

func Example_keys() {
	// 100 a minute, in bursts of 20, for each address: no string is made for the key.
	perMinute := tb.Limit{Capacity: 20, Tokens: 100, Per: time.Minute}
	limiter, err := cas.New[netip.Addr](perMinute, tb.WithMaxKeys(100_000))
	if err != nil {
		panic(err)
	}
	d, _ := limiter.AllowN(context.Background(), netip.MustParseAddr("2001:db8::1"), 5)
	fmt.Println(d.Allowed, d.Remaining)
	// Output:
	// true 15
}

func Example_clock() {
	now := time.Now()
	limiter := cas.NewTokenBucket(1, 0.1, tb.WithClock(func() time.Time { return now }))

	limiter.Allow(context.Background(), "a")
	d, _ := limiter.Allow(context.Background(), "a")
	fmt.Println(d.Allowed, d.RetryAfter)

	now = now.Add(d.RetryAfter)
	d, _ = limiter.Allow(context.Background(), "a")
	fmt.Println(d.Allowed)
	// Output:
	// false 10s
	// true
}

func Example_middleware() {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "hello, ", w.Header().Get("RateLimit-Remaining"), " left")
	})
	policy, err := httplimit.ParsePolicy([]byte(`{
		"name": "per-address", "limit_keys": ["ip:address"], "algorithm": "token_bucket",
		"algorithm_config": { "tokens_per_second": 5, "burst": 10 } }`))
	if err != nil {
		panic(err)
	}
	limiter, err := httplimit.New(policy)
	if err != nil {
		panic(err)
	}
	http.Handle("/", limiter.Middleware(handler))

	w := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(w.Body)
	// Output:
	// hello, 9 left
}

func Example_severalBuckets() {
	perUser, err := cas.New[string](tb.Limit{Capacity: 5, Tokens: 1, Per: time.Second})
	if err != nil {
		panic(err)
	}
	perTenant, err := cas.New[int](tb.Limit{Capacity: 100, Tokens: 20, Per: time.Second})
	if err != nil {
		panic(err)
	}
	// The errors are for costs that are not above 0.
	user, _ := perUser.Charge("ada", 1)
	tenant, _ := perTenant.Charge(42, 2.5)
	var decisions [2]tb.Decision
	allowed, err := tb.TakeAll(time.Now(), []tb.Charge{&user, &tenant}, decisions[:])
	if err != nil {
		panic(err)
	}
	fmt.Println(allowed, decisions[0].Remaining, decisions[1].Remaining)
	// Output:
	// true 4 97
}
