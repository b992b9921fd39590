package migrate

import (
	"net/http"
	"time"

	"github.com/go-chi/httprate"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

var _ = httprateTable

func httprateBefore(next http.Handler) []http.Handler {
	key := func(r *http.Request) (string, error) { return user(r), nil }
	tenant := key
	return []http.Handler{
		httprate.LimitBy(100, time.Minute, key)(next),
		httprate.LimitByIP(100, time.Minute)(next),
		httprate.LimitBy(100, time.Minute, httprate.JoinKeys(tenant, httprate.KeyByEndpoint))(next),
	}
}

func httprateAfter(next http.Handler) []http.Handler {
	key := user
	path := func(r *http.Request) string { return r.URL.Path }
	return []http.Handler{
		httplimit.PerKey(100, 100.0/60, key).Middleware(next),
		httplimit.PerAddress(100, 100.0/60).Middleware(next),
		limited(next, httplimit.Rule{
			Keys: []string{"tenant", "path"}, OnMissing: httplimit.Shared,
			Limit: ratelimit.Limit{Capacity: 100, Tokens: 100, Per: time.Minute},
		}, httplimit.WithExtractor("tenant", user), httplimit.WithExtractor("path", path)),
	}
}

func user(r *http.Request) string {
	name, _, _ := r.BasicAuth()
	return name
}

func httprateTable(r *http.Request, teapot http.HandlerFunc) []any {
	return []any{
		httprate.LimitAll(100, time.Minute),
		httprate.WithKeyFuncs(httprate.KeyByIP, httprate.KeyByEndpoint),
		httplimit.Rule{Keys: []string{"ip:address", "path"}},
		httprate.WithIncrement(r.Context(), 5), httplimit.Rule{Cost: httplimit.Cost{Fixed: 5}},
		httprate.WithLimitHandler(teapot),
	}
}
