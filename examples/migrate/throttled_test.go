package migrate

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

func beforeThrottled(next http.Handler) (http.Handler, error) {
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

func afterThrottled(next http.Handler) (http.Handler, error) {
	limiter, err := httplimit.New(httplimit.Rules(httplimit.Rule{
		Name:  "per-address",
		Keys:  []string{"ip:address"},
		Limit: ratelimit.Limit{Capacity: 6, Tokens: 20, Per: time.Minute},
	}), httplimit.WithLimiterOptions(ratelimit.WithMaxKeys(100_000)))
	if err != nil {
		return nil, err
	}
	handler := limiter.Middleware(next)
	return handler, nil
}

// All requests without the field share a bucket before. A rule does not apply to them, unless
// OnMissing says otherwise.
func TestThrottledSharesTheBucketOfMissingFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota := throttled.RateQuota{MaxRate: throttled.PerMin(20), MaxBurst: 5}
		before := (&throttled.HTTPRateLimiterCtx{
			RateLimiter: must(throttled.NewGCRARateLimiterCtx(must(memstore.NewCtx(10)), quota)),
			VaryBy:      &throttled.VaryBy{Headers: []string{"X-Api-Key"}},
		}).RateLimit(served)
		rule := httplimit.Rule{
			Keys:  []string{"header:x-api-key"},
			Limit: ratelimit.Limit{Capacity: 6, Tokens: 20, Per: time.Minute},
		}
		skip := ruleHandler(rule)
		rule.OnMissing = httplimit.Shared
		shared := ruleHandler(rule)
		wants(t, "no key", granted(t, before, 10), 6, granted(t, skip, 10), 10)
		wants(t, "no key", granted(t, before, 10), 0, granted(t, shared, 10), 6)
		key := "X-Api-Key: a"
		wants(t, "a key", granted(t, before, 10, key), 6, granted(t, shared, 10, key), 6)
	})
}

// TestThrottledCalls runs both columns of the table.
func TestThrottledCalls(t *testing.T) {
	ctx := t.Context()
	synctest.Test(t, func(t *testing.T) {
		quota := throttled.RateQuota{MaxRate: throttled.PerMin(20), MaxBurst: 5}
		rateLimiter := must(throttled.NewGCRARateLimiterCtx(must(memstore.NewCtx(10)), quota))
		limiter := must(ratelimit.New[string](ratelimit.Limit{Capacity: 6, Tokens: 20, Per: time.Minute}))
		for _, n := range []int{2, 3, 3, 1} {
			limited, result, err := rateLimiter.RateLimitCtx(ctx, "ada", n)
			d, errAfter := limiter.AllowN(ctx, "ada", n)
			wants(t, "error", err, nil, errAfter, nil)
			if limited == d.Allowed || result.Remaining != d.Remaining {
				t.Errorf("%d tokens: %+v before and %+v after", n, result, d)
			}
			if limited { // the second 3
				wants(t, "RetryAfter", result.RetryAfter, 6*time.Second, d.RetryAfter, 6*time.Second)
			}
			level, err := limiter.Level(ctx, "ada")
			if err != nil || level.Full != result.ResetAfter {
				t.Errorf("ResetAfter: %v before and %v after, %v", result.ResetAfter, level.Full, err)
			}
		}
		_, result, _ := rateLimiter.RateLimitCtx(ctx, "ada", 7)
		d, _ := limiter.AllowN(ctx, "ada", 7)
		wants(t, "never", result.RetryAfter, -1, d.RetryAfter, ratelimit.Never)
	})
}
