package migrate

import (
	"context"
	"net/http"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

var _ = []any{throttledBefore, throttledAfter, throttledTable}

func throttledBefore(next http.Handler) (http.Handler, error) {
	store, err := memstore.NewCtx(100_000)
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerMin(20), MaxBurst: 5}
	rateLimiter, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	httpRateLimiter := throttled.HTTPRateLimiterCtx{
		RateLimiter: rateLimiter,
		VaryBy:      &throttled.VaryBy{RemoteAddr: true},
	}
	handler := httpRateLimiter.RateLimit(next)
	return handler, nil
}

func throttledAfter(next http.Handler) http.Handler {
	keys := httplimit.WithLimiterOptions(ratelimit.WithMaxKeys(100_000))
	handler := httplimit.PerAddress(6, 20.0/60, keys).Middleware(next)
	return handler
}

func throttledTable(
	ctx context.Context, rateLimiter throttled.RateLimiterCtx, limiter *ratelimit.Limiter[string],
	n int,
) []any {
	_, result, _ := rateLimiter.RateLimitCtx(ctx, "ada", n)
	d, _ := limiter.AllowN(ctx, "ada", float64(n))
	level, _ := limiter.Level(ctx, "ada")
	return []any{
		result.RetryAfter, d.RetryAfter, ratelimit.Never, result.ResetAfter, level.Full,
		throttled.HTTPRateLimiterCtx{VaryBy: &throttled.VaryBy{Headers: []string{"X-Api-Key"}}},
		httplimit.Rule{Keys: []string{"header:x-api-key"}},
	}
}
