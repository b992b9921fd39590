package migrate

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

var _ = []any{ululeBefore, ululeAfter, ululeTable, ululeHere}

func ululeBefore(store limiter.Store, next http.Handler) (http.Handler, error) {
	rate, err := limiter.NewRateFromFormatted("10-M")
	if err != nil {
		return nil, err
	}
	handler := stdlib.NewMiddleware(limiter.New(store, rate)).Handler(next)
	return handler, nil
}

func ululeAfter(next http.Handler) http.Handler {
	handler := httplimit.PerAddress(10, 10.0/60).Middleware(next)
	return handler
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
