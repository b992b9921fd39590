package peers

import (
	"context"
	"runtime"
	"time"

	limiter "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"

	"github.com/seed-181794aa/ratelimit/tb"
)

// newSethvargo returns the memory store of sethvargo/go-limiter. Entries stay for at
// least a window, as its documentation asks.
func newSethvargo(limit tb.Limit) limiter.Store {
	return must(memorystore.New(&memorystore.Config{
		Tokens:      uint64(limit.Capacity),
		Interval:    window(limit),
		SweepMinTTL: max(12*time.Hour, window(limit)),
	}))
}

// sethvargoMem is sethvargo/go-limiter: keyed, without a bound, a lock per key. It gives
// each key all its tokens at each tick of a window that starts with the key's first call,
// so twice the capacity can go around a tick. Calls have no cost. It reads the wall clock
// through a link into package time, and sweeps idle keys in a goroutine.
func sethvargoMem(limit tb.Limit, _ int) func(string) bool {
	store := newSethvargo(limit)
	owner := new(struct{ limiter.Store })
	owner.Store = store
	// The goroutine would keep the table of a finished benchmark in memory.
	runtime.AddCleanup(owner, func(s limiter.Store) { _ = s.Close(context.Background()) }, store)
	ctx := context.Background()
	return func(key string) bool {
		_, _, _, ok, err := owner.Take(ctx, key)
		return ok && err == nil
	}
}
