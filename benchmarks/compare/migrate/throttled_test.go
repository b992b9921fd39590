package migrate

import (
	"context"
	"net/http"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

var _ = throttledTable

func throttledBefore(next http.Handler) http.Handler {
	store, _ := memstore.NewCtx(100_000)
	quota := throttled.RateQuota{MaxRate: throttled.PerMin(20), MaxBurst: 5}
	rateLimiter, _ := throttled.NewGCRARateLimiterCtx(store, quota)
	httpRateLimiter := throttled.HTTPRateLimiterCtx{
		RateLimiter: rateLimiter, VaryBy: &throttled.VaryBy{Headers: []string{"X-Api-Key"}},
	}
	return httpRateLimiter.RateLimit(next)
}

func throttledTable(
	ctx context.Context, rateLimiter throttled.RateLimiterCtx, limiter *ratelimit.Limiter[string],
	n int, next http.Handler,
) []any {
	keys := httplimit.WithLimiterOptions(ratelimit.WithMaxKeys(100_000))
	_, result, _ := rateLimiter.RateLimitCtx(ctx, "ada", n)
	d, _ := limiter.AllowN(ctx, "ada", float64(n))
	level, _ := limiter.Level(ctx, "ada")
	return []any{
		result.RetryAfter, d.RetryAfter, ratelimit.Never, result.ResetAfter, level.Full,
		httplimit.PerAddress(6, 20.0/60, keys).Middleware(next),
	}
}
