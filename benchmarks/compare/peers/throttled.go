package peers

import (
	"context"
	"math"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"

	"github.com/seed-181794aa/ratelimit/tb"
)

// newThrottled returns throttled's GCRA on store. It rounds the time per token down to whole
// nanoseconds.
func newThrottled(limit tb.Limit, store throttled.GCRAStoreCtx) *throttled.GCRARateLimiterCtx {
	quota := throttled.RateQuota{
		MaxRate:  throttled.PerDuration(int(limit.Tokens), limit.Per),
		MaxBurst: limit.Capacity - 1,
	}
	return must(throttled.NewGCRARateLimiterCtx(store, quota))
}

// throttledMem is throttled with its memory store, a bounded LRU. Every call takes the lock
// of the LRU, refusals too. A key that was evicted comes back full. By default a call
// returns an error after ten lost compare-and-swaps in a row, which happens even on two
// processors. Here it tries again without a limit.
func throttledMem(limit tb.Limit, maxKeys int) func(string) bool {
	l := newThrottled(limit, must(memstore.NewCtx(maxKeys)))
	l.SetMaxCASAttemptsLimit(math.MaxInt)
	ctx := context.Background()
	return func(key string) bool {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return err == nil && !limited
	}
}
