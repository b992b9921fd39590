package peers

import (
	"context"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/seed-181794aa/ratelimit/tb"
)

// ululeMem is ulule/limiter with its memory store. It has a lock per key and no bound.
// Windows start with a key's first call, and refused calls count. Up to twice the capacity
// is granted around the end of a window. A goroutine sweeps expired counters.
func ululeMem(limit tb.Limit, _ int) func(string) bool {
	rate := limiter.Rate{Period: window(limit), Limit: int64(limit.Capacity)}
	l := limiter.New(memory.NewStore(), rate)
	ctx := context.Background()
	return func(key string) bool {
		c, err := l.Get(ctx, key)
		return err == nil && !c.Reached
	}
}
