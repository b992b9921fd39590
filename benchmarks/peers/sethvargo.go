package peers

import (
	"context"
	"runtime"
	"time"

	limiter "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"

	"github.com/seed-181794aa/ratelimit/tb"
)

// newSethvargo returns the memory store of sethvargo/go-limiter. Entries stay for at least
// a window, as its documentation requires.
func newSethvargo(limit tb.Limit) limiter.Store {
	return must(memorystore.New(&memorystore.Config{
		Tokens:      uint64(limit.Capacity),
		Interval:    window(limit),
		SweepMinTTL: max(12*time.Hour, window(limit)),
	}))
}

// sethvargoMem is sethvargo/go-limiter. It has a lock per key and no bound. Windows start
// with a key's first call, and each window grants the capacity: up to twice the capacity is
// granted around the end of a window. A call takes one token. The limiter reads the clock
// through a link into package time and sweeps idle keys in a goroutine.
func sethvargoMem(limit tb.Limit, _ int) func(string) bool {
	store := newSethvargo(limit)
	owner := new(struct{ limiter.Store })
	owner.Store = store
	// Without Close, the goroutine would keep the table in memory after the benchmark.
	runtime.AddCleanup(owner, func(s limiter.Store) { _ = s.Close(context.Background()) }, store)
	ctx := context.Background()
	return func(key string) bool {
		_, _, _, ok, err := owner.Take(ctx, key)
		return ok && err == nil
	}
}
