package migrate

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

var _ = []any{ululeTable, ululeHere}

func ululeBefore(next http.Handler) http.Handler {
	store := memory.NewStoreWithOptions(limiter.StoreOptions{})
	rate, _ := limiter.NewRateFromFormatted("10-M")
	return stdlib.NewMiddleware(limiter.New(store, rate)).Handler(next)
}

func ululeTable(ctx context.Context, instance *limiter.Limiter, key string) []any {
	c, _ := instance.Get(ctx, key)
	instance.Increment(ctx, key, 4)
	instance.Peek(ctx, key)
	instance.Reset(ctx, key)
	return []any{c.Reached, limiter.WithTrustForwardHeader(true)}
}

func ululeHere(ctx context.Context, limiter *ratelimit.Limiter[string], key string) []any {
	d, _ := limiter.Allow(ctx, key)
	limiter.AllowN(ctx, key, 4)
	limiter.Level(ctx, key)
	limiter.Reset(key)
	return []any{
		!d.Allowed,
		httplimit.ClientAddress{Trusted: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
	}
}
