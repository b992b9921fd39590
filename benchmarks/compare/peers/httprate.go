package peers

import (
	"net/http"

	"github.com/go-chi/httprate"

	"github.com/seed-181794aa/ratelimit/tb"
)

// httprateLocal is the limiter inside go-chi/httprate's middleware, with its local counter.
// The counter has one lock and no bound, and its keys are 64-bit hashes. The limiter weighs
// the counts of two windows instead of keeping a bucket. Response headers are disabled
// here; the limiter formats some of them nevertheless.
func httprateLocal(limit tb.Limit, _ int) func(string) bool {
	l := httprate.NewRateLimiter(limit.Capacity, window(limit),
		httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
	r := new(http.Request)
	return func(key string) bool { return !l.OnLimit(nil, r, key) }
}
