package ratelimit_test

import (
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit"
)

// A client that has broken a rule gets nothing for an hour. Then its bucket is empty and refills.
func ExampleLimiter_Hold() {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	limiter := ratelimit.NewTokenBucket(10, 1, ratelimit.WithClock(func() time.Time { return now }))

	if err := limiter.Hold(ctx, "203.0.113.195", now.Add(time.Hour)); err != nil {
		panic(err)
	}
	d, _ := limiter.Allow(ctx, "203.0.113.195")
	fmt.Println(d.Allowed, d.RetryAfter)
	limiter.Reset("203.0.113.195") // forgives it
	d, _ = limiter.Allow(ctx, "203.0.113.195")
	fmt.Println(d.Allowed, d.Remaining)
	// Output:
	// false 1h0m1s
	// true 9
}

// Crawlers must leave 5 tokens of a host, so that people still get in.
func ExampleKeyCharge_Keep() {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	hosts := ratelimit.NewTokenBucket(10, 1, ratelimit.WithClock(func() time.Time { return now }))

	visit := func(host string, keep float64) bool {
		charge, err := hosts.Charge(host, 1)
		if err != nil {
			panic(err)
		}
		charge.Keep(keep)
		d, _ := charge.Take(now)
		return d.Allowed
	}
	crawled := 0
	for visit("example.com", 5) {
		crawled++
	}
	fmt.Println(crawled, visit("example.com", 0))
	// Output: 5 true
}

// To wait for several limits at once, take from all of them and wait for the last.
func Example_waitAll() {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	clock := ratelimit.WithClock(func() time.Time { return now })
	requests := ratelimit.NewTokenBucket(1, 1, clock)
	tokens := ratelimit.NewTokenBucket(1000, 100, clock)

	send := func(cost float64) time.Duration {
		one, _ := requests.Charge("model", 1)
		all, _ := tokens.Charge("model", cost)
		one.MayWait(time.Minute)
		all.MayWait(time.Minute)
		_, ok, err := ratelimit.TakeAll(now, []ratelimit.Charge{&one, &all}, nil)
		if err != nil || !ok {
			return ratelimit.Never // the wait would be longer than a minute
		}
		return max(one.Delay(), all.Delay()) // sleep for this time, or Cancel both
	}
	fmt.Println(send(800), send(800))
	// Output: 0s 6s
}

// A sender that can use less than it asks for takes what is there.
func Example_atMost() {
	bucket, err := ratelimit.NewBucket(ratelimit.Limit{Capacity: 10, Tokens: 1, Per: time.Hour})
	if err != nil {
		panic(err)
	}
	atMost := func(want int) int {
		for {
			n := min(want, int(bucket.Level().Tokens))
			if n <= 0 {
				return 0
			}
			if d, _ := bucket.AllowN(float64(n)); d.Allowed {
				return n
			} // another caller was faster: look again
		}
	}
	fmt.Println(atMost(7), atMost(7), atMost(7))
	// Output: 7 3 0
}
