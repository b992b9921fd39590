package migrate

import (
	"context"
	"fmt"
	"sync"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/rate"
)

var _ = []any{xtimeMap, xtimeHere}

func xtimeMap(ctx context.Context, mu *sync.Mutex, key, tenant, user string) bool {
	limiters := make(map[string]*rate.Limiter)
	limiters[key].Wait(ctx)
	limiters[fmt.Sprint(tenant, user)] = nil
	mu.Lock()
	lim, ok := limiters[key]
	if !ok {
		lim = rate.NewLimiter(4, 10)
		limiters[key] = lim
	}
	mu.Unlock()
	return lim.Allow()
}

func xtimeHere(ctx context.Context, limit ratelimit.Limit, key string) ([]any, error) {
	limiter, err := ratelimit.New[string](limit)
	if err != nil {
		return nil, err
	}
	limiter.Wait(ctx, key, 1)
	type account struct{ tenant, user string }
	accounts, _ := ratelimit.New[account](limit)
	accounts.Allow(ctx, account{"acme", "ada"})
	d, err := limiter.Allow(ctx, key)
	return []any{d, ratelimit.WithMaxKeys(100_000)}, err
}
