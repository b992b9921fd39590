package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit"
)

// Wait sleeps until the tokens may be used. If the deadline of the context is too near, it fails at
// once and takes nothing.
func Example_wait() {
	limiter := ratelimit.NewTokenBucket(2, 0.1) // two at once, then one in ten seconds

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for range 3 {
		var tooLong *ratelimit.WaitError
		switch err := limiter.Wait(ctx, "worker", 1); {
		case errors.As(err, &tooLong):
			fmt.Println("gave up on", tooLong.Wait.Round(time.Second))
		case err != nil:
			panic(err)
		default:
			fmt.Println("went ahead")
		}
	}
	// Output:
	// went ahead
	// went ahead
	// gave up on 10s
}

// A reservation can be cancelled before it is used. Then its tokens are free for other callers.
func Example_reserve() {
	now := time.Now()
	clock := ratelimit.WithClock(func() time.Time { return now })
	limiter := ratelimit.NewTokenBucket(10, 5, clock)

	limiter.AllowN(ctx, "a", 8)
	r, err := limiter.Reserve(ctx, "a", 7)
	if err != nil {
		panic(err)
	}
	fmt.Println("may be used in", r.Delay())
	if r.Delay() > 500*time.Millisecond { // too long for this caller
		r.Cancel()
	}
	d, err := limiter.AllowN(ctx, "a", 2)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Allowed)
	// Output:
	// may be used in 1s
	// true
}

// The tokens of a language model are known after its answer. The caller reserves an estimate and
// settles the actual number.
func Example_settle() {
	now := time.Now()
	clock := ratelimit.WithClock(func() time.Time { return now })
	perMinute := ratelimit.Limit{Capacity: 10_000, Tokens: 60_000, Per: time.Minute}
	limiter, err := ratelimit.New[string](perMinute, clock)
	if err != nil {
		panic(err)
	}
	for _, used := range []float64{1_200, 5_000, 9_000} { // by three prompts
		r, err := limiter.Reserve(ctx, "team", 4_000)
		if err != nil {
			panic(err)
		}
		if !r.Allowed {
			panic("the queue is full")
		}
		if err := r.Settle(used); err != nil { // after r.Delay() and the answer
			panic(err)
		}
		level, err := limiter.Level(ctx, "team")
		if err != nil {
			panic(err)
		}
		fmt.Println(level.Tokens, "tokens left after a delay of", r.Delay())
	}
	// Output:
	// 8800 tokens left after a delay of 0s
	// 3800 tokens left after a delay of 0s
	// -5200 tokens left after a delay of 200ms
}

// SetLimit changes the limit of all keys. A bucket keeps its tokens: a higher limit is not a free
// burst.
func Example_setLimit() {
	now := time.Now()
	clock := ratelimit.WithClock(func() time.Time { return now })
	limiter := ratelimit.NewTokenBucket(10, 1, clock)

	limiter.AllowN(ctx, "a", 7)
	more := ratelimit.Limit{Capacity: 100, Tokens: 50, Per: time.Second}
	if err := limiter.SetLimit(more); err != nil {
		panic(err)
	}
	d, err := limiter.AllowN(ctx, "a", 100)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Remaining, "tokens kept, full in", d.RetryAfter)
	// Output: 3 tokens kept, full in 1.94s
}
