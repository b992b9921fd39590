package peers

import (
	"context"
	"math"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"

	"github.com/seed-181794aa/ratelimit/tb"
)

// newThrottled returns throttled's GCRA on store. Its rate is a whole number of
// nanoseconds per token.
func newThrottled(limit tb.Limit, store throttled.GCRAStoreCtx) *throttled.GCRARateLimiterCtx {
	quota := throttled.RateQuota{
		MaxRate:  throttled.PerDuration(int(limit.Tokens), limit.Per),
		MaxBurst: limit.Capacity - 1,
	}
	return must(throttled.NewGCRARateLimiterCtx(store, quota))
}

// throttledMem is throttled with its memory store: keyed and bounded, with an LRU whose
// lock every call takes, refusals too. A key that was evicted starts with a fresh burst.
// By default, a call that loses ten compare-and-swaps in a row is neither granted nor
// refused but gets an error, even with two processors. Here it goes on.
func throttledMem(limit tb.Limit, maxKeys int) func(string) bool {
	l := newThrottled(limit, must(memstore.NewCtx(maxKeys)))
	l.SetMaxCASAttemptsLimit(math.MaxInt)
	ctx := context.Background()
	return func(key string) bool {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return err == nil && !limited
	}
}
