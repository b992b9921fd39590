package migrate

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

func TestMigrateReserve(t *testing.T) {
	inStates(t, func(t *testing.T, lim *rate.Limiter, bucket *ratelimit.Bucket) {
		for range 10 {
			r := lim.Reserve()
			ok, delay := r.OK(), r.Delay()
			sameReservation(t, ok, delay, func() (tb.Reservation, error) {
				r, err := bucket.Reserve(1)
				return r, err
			})
		}
	})
	for _, n := range []int{2, 5, 10, 11} {
		inStates(t, func(t *testing.T, lim *rate.Limiter, bucket *ratelimit.Bucket) {
			r := lim.ReserveN(time.Now(), n)
			ok, delay := r.OK(), r.Delay()
			sameReservation(t, ok, delay, func() (tb.Reservation, error) {
				r, err := bucket.Reserve(float64(n))
				return r, err
			})
		})
	}
}

func sameReservation(
	t *testing.T, ok bool, delay time.Duration, reserve func() (tb.Reservation, error),
) {
	t.Helper()
	r, err := reserve()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "OK", ok, r.Allowed)
	if ok {
		same(t, "Delay", delay, r.Delay())
	}
}

func TestMigrateCancel(t *testing.T) {
	inStates(t, func(t *testing.T, lim *rate.Limiter, bucket *ratelimit.Bucket) {
		{
			r := lim.ReserveN(time.Now(), 3)
			r.Cancel()
		}
		r, err := bucket.Reserve(3)
		if err != nil {
			t.Fatal(err)
		}
		r.Cancel()
	})
}

func TestMigrateWait(t *testing.T) {
	inStates(t, func(t *testing.T, lim *rate.Limiter, bucket *ratelimit.Bucket) {
		ctx := t.Context()
		sameTimes(t, 5,
			func() error { return lim.Wait(ctx) },
			func() error { return bucket.Wait(ctx, 1) })
	})
	for _, n := range []int{2, 5, 10, 11} {
		inStates(t, func(t *testing.T, lim *rate.Limiter, bucket *ratelimit.Bucket) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			sameTimes(t, 3,
				func() error { return lim.WaitN(ctx, n) },
				func() error { return bucket.Wait(ctx, float64(n)) })
		})
	}
}

func TestMigrateWaitForKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		limiters := map[string]*rate.Limiter{"a": rate.NewLimiter(4, 10), "b": rate.NewLimiter(4, 10)}
		limiter := must(ratelimit.New[string](must(ratelimit.PerSecond(10, 4))))
		for _, key := range []string{"a", "b"} {
			sameTimes(t, 15,
				func() error { return limiters[key].Wait(ctx) },
				func() error { return limiter.Wait(ctx, key, 1) })
		}
	})
}

// sameTimes makes calls of both functions in two goroutines. It requires that they return at the
// same times, and fail at the same calls.
func sameTimes(t *testing.T, calls int, there, here func() error) {
	t.Helper()
	type result struct {
		after  time.Duration
		failed bool
	}
	start := time.Now()
	var all sync.WaitGroup
	results := make([][2]result, calls)
	for i, call := range []func() error{there, here} {
		all.Go(func() {
			for c := range results {
				failed := call() != nil
				results[c][i] = result{time.Since(start), failed}
			}
		})
	}
	all.Wait()
	for c, r := range results {
		if r[0] != r[1] {
			t.Errorf("call %d: the other limiter returns %+v, and the bucket %+v", c, r[0], r[1])
		}
	}
}

func TestMigrateSetLimit(t *testing.T) {
	inStates(t, func(t *testing.T, lim *rate.Limiter, bucket *ratelimit.Bucket) {
		lim.SetLimit(2)
		limit, err := ratelimit.PerSecond(bucket.Limit().Capacity, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := bucket.SetLimit(limit); err != nil {
			t.Fatal(err)
		}
	})
	inStates(t, func(t *testing.T, lim *rate.Limiter, bucket *ratelimit.Bucket) {
		lim.Allow() // a bucket without any grant is full with the new capacity, too
		bucket.Allow()
		lim.SetBurst(20)
		limit := bucket.Limit()
		limit.Capacity = 20
		if err := bucket.SetLimit(limit); err != nil {
			t.Fatal(err)
		}
		same(t, "Burst", lim.Burst(), bucket.Limit().Capacity)
	})
}

func TestMigrateTake(t *testing.T) {
	calls := func(t *testing.T, rl uber.Limiter, limit ratelimit.Limit, idle time.Duration) {
		bucket := must(ratelimit.NewBucket(limit))
		ctx := t.Context()
		if limit.Capacity > 1 { // a new bucket is full, and a new limiter of uber has no slack
			rl.Take()
			bucket.AllowN(limit.Capacity)
		}
		time.Sleep(idle)
		sameTimes(t, 30,
			func() error { rl.Take(); return nil },
			func() error { return bucket.Wait(ctx, 1) })
	}
	synctest.Test(t, func(t *testing.T) {
		rl := uber.New(100)
		limit := ratelimit.Limit{Capacity: 11, Tokens: 100, Per: time.Second}
		calls(t, rl, limit, time.Second)
	})
	synctest.Test(t, func(t *testing.T) {
		rl := uber.New(100, uber.Per(time.Minute))
		limit := ratelimit.Limit{Capacity: 11, Tokens: 100, Per: time.Minute}
		calls(t, rl, limit, time.Minute)
	})
	synctest.Test(t, func(t *testing.T) {
		rl := uber.New(100, uber.WithoutSlack)
		limit := ratelimit.Limit{Capacity: 1, Tokens: 100, Per: time.Second}
		calls(t, rl, limit, 0)
	})
}
