package migrate

import (
	"context"
	"fmt"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/rate"
)

var _ = []any{xtimeMap, xtimeHere}

func xtimeMap(ctx context.Context, key, tenant, user string) {
	limiters := make(map[string]*rate.Limiter)
	limiters[key].Wait(ctx)
	limiters[fmt.Sprint(tenant, user)] = nil
}

func xtimeHere(ctx context.Context, limit ratelimit.Limit, key string) []any {
	limiter, err := ratelimit.New[string](limit)
	limiter.Wait(ctx, key, 1)
	type account struct{ tenant, user string }
	accounts, _ := ratelimit.New[account](limit)
	accounts.Allow(ctx, account{"acme", "ada"})
	return []any{err, ratelimit.WithMaxKeys(100_000)}
}
