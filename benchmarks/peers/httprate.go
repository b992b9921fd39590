package peers

import (
	"net/http"

	"github.com/go-chi/httprate"

	"github.com/seed-181794aa/ratelimit/tb"
)

func newHTTPRate(limit tb.Limit, headers httprate.ResponseHeaders) *httprate.RateLimiter {
	return httprate.NewRateLimiter(limit.Capacity, window(limit),
		httprate.WithResponseHeaders(headers))
}

// httprateLocal is the limiter inside go-chi/httprate's middleware, with its local
// counter: keyed by a 64-bit hash, without a bound in a window, one lock for all. It
// weighs the counts of two windows instead of keeping a bucket. It is asked without the
// response headers, which it can be told to leave out, and formats some of them all the
// same.
func httprateLocal(limit tb.Limit, _ int) func(string) bool {
	l := newHTTPRate(limit, httprate.ResponseHeaders{})
	r := new(http.Request)
	return func(key string) bool { return !l.OnLimit(nil, r, key) }
}
