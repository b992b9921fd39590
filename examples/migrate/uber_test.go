package migrate

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	uber "go.uber.org/ratelimit"

	"github.com/seed-181794aa/ratelimit"
)

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
