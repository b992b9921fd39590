package ratelimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

var ctx = context.Background()

func Example() {
	limiter := ratelimit.NewTokenBucket(10, 1) // for each key: bursts of 10, then 1 a second

	for range 11 {
		d, err := limiter.Allow(ctx, "203.0.113.195")
		if err != nil {
			panic(err)
		}
		if !d.Allowed {
			fmt.Println("retry after", d.RetryAfter.Round(time.Second))
		}
	}
	// Output: retry after 1s
}

// Package httplimit limits an http.Handler.
func Example_middleware() {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "hello, ", w.Header().Get("RateLimit-Remaining"), " left")
	})
	user := func(r *http.Request) string { name, _, _ := r.BasicAuth(); return name }

	http.Handle("/", httplimit.PerAddress(10, 5).Middleware(handler)) // bursts of 10, then 5 a second
	http.Handle("/by-user", httplimit.PerKey(2, 0.1, user).Middleware(handler))

	w := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(w.Body)
	// Output: hello, 9 left
}

func ExampleNew() {
	// 100 a minute, in bursts of 20. The key is an address: no string is made for it.
	limit := ratelimit.Limit{Capacity: 20, Tokens: 100, Per: time.Minute}
	limiter, err := ratelimit.New[netip.Addr](limit, ratelimit.WithMaxKeys(100_000))
	if err != nil {
		panic(err)
	}
	d, err := limiter.AllowN(ctx, netip.MustParseAddr("2001:db8::1"), 5)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Allowed, d.Remaining)
	// Output: true 15
}

func ExampleNewBucket() {
	limit, err := ratelimit.PerSecond(3, 0.1) // one token in ten seconds
	if err != nil {
		panic(err)
	}
	bucket, err := ratelimit.NewBucket(limit)
	if err != nil {
		panic(err)
	}
	d, err := bucket.AllowN(2.5)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Allowed, d.Remaining)
	// Output: true 0
}

// Each table may read 100 units a second, and saves up to five minutes of unused capacity. An
// eventually consistent read costs half a unit, and a transactional read two.
func ExampleLimit() {
	const rate = 100
	limit := ratelimit.Limit{Capacity: 300 * rate, Tokens: rate, Per: time.Second}
	now := time.Now()
	clock := ratelimit.WithClock(func() time.Time { return now })
	tables, err := ratelimit.New[string](limit, clock)
	if err != nil {
		panic(err)
	}
	burst, _ := tables.AllowN(ctx, "orders", 30_000)
	eventual, _ := tables.AllowN(ctx, "orders", 0.5)
	transactional, _ := tables.AllowN(ctx, "orders", 2)
	fmt.Println(burst.Allowed, eventual.RetryAfter, transactional.RetryAfter)

	now = now.Add(5 * time.Minute) // idle
	burst, _ = tables.AllowN(ctx, "orders", 30_000)
	fmt.Println(burst.Allowed, burst.Remaining)
	// Output:
	// true 5ms 20ms
	// true 0
}

func ExampleLimiter_TryTake() {
	limiter := ratelimit.NewTokenBucket(1, 0.1)
	fmt.Println(limiter.TryTake("a"), limiter.TryTake("a"))
	// Output: true false
}

// A message takes from the bucket of its user, and from one bucket for all users.
func ExampleAllowAll() {
	perUser := ratelimit.NewTokenBucket(5, 1)
	all, err := ratelimit.NewBucket(ratelimit.Limit{Capacity: 7, Tokens: 20, Per: time.Hour})
	if err != nil {
		panic(err)
	}
	allow := func(key string, cost float64) (ratelimit.Decision, error) {
		user, err := perUser.Charge(key, cost)
		if err != nil {
			return ratelimit.Decision{}, err
		}
		of, err := all.Charge(cost)
		if err != nil {
			return ratelimit.Decision{}, err
		}
		return ratelimit.AllowAll(&user, &of)
	}
	for _, key := range []string{"ada", "bob", "bob"} {
		d, err := allow(key, 3)
		fmt.Println(key, d.Allowed, d.Remaining, err)
	}
	// Output:
	// ada true 2 <nil>
	// bob true 1 <nil>
	// bob false 1 <nil>
}

// Charges with a clock of their own, or whose decisions are all wanted, need TakeAll.
func ExampleTakeAll() {
	perUser, err := ratelimit.New[string](ratelimit.Limit{Capacity: 5, Tokens: 1, Per: time.Second})
	if err != nil {
		panic(err)
	}
	perTenant, err := ratelimit.New[int](ratelimit.Limit{Capacity: 100, Tokens: 20, Per: time.Second})
	if err != nil {
		panic(err)
	}
	// An error means that the cost is not positive.
	user, _ := perUser.Charge("ada", 1)
	tenant, _ := perTenant.Charge(42, 2.5)
	charges := []ratelimit.Charge{&user, &tenant}
	decisions, allowed, err := ratelimit.TakeAll(time.Now(), charges, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(allowed, decisions[0].Remaining, decisions[1].Remaining)
	// Output: true 4 97
}

// Level reads a bucket and takes nothing.
func Example_level() {
	now := time.Now()
	clock := ratelimit.WithClock(func() time.Time { return now })
	limiter := ratelimit.NewTokenBucket(10, 4, clock)

	limiter.AllowN(ctx, "a", 2.5)
	level, err := limiter.Level(ctx, "a")
	if err != nil {
		panic(err)
	}
	fmt.Println(level.Tokens, "tokens, the next one in", level.NextToken, "and full in", level.Full)
	// Output: 7.5 tokens, the next one in 125ms and full in 625ms
}

// A test can set the clock of a limiter.
func ExampleWithClock() {
	now := time.Now()
	clock := func() time.Time { return now }
	limiter := ratelimit.NewTokenBucket(1, 0.1, ratelimit.WithClock(clock))

	limiter.Allow(ctx, "a")
	d, _ := limiter.Allow(ctx, "a")
	fmt.Println(d.Allowed, d.RetryAfter)

	now = now.Add(d.RetryAfter)
	d, _ = limiter.Allow(ctx, "a")
	fmt.Println(d.Allowed)
	// Output:
	// false 10s
	// true
}

// A clock that a ticker sets costs a call less than a reading of the time. RetryAfter then counts
// from the last tick, so a caller that sleeps for it may be refused once more, for less than a
// tick. A caller that has read the time needs no such clock: AllowAt takes its reading.
func ExampleWithClock_coarse() {
	var last atomic.Pointer[time.Time]
	tick := func() {
		now := time.Now()
		last.Store(&now)
	}
	tick()
	go func() { // as long as the program runs
		for range time.Tick(time.Millisecond) {
			tick()
		}
	}()
	clock := func() time.Time { return *last.Load() }
	limiter := ratelimit.NewTokenBucket(10, 1, ratelimit.WithClock(clock))

	d, _ := limiter.Allow(ctx, "a")
	fmt.Println(d.Allowed, d.Remaining)
	// Output: true 9
}
