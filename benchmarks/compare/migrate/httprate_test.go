package migrate

import (
	"net/http"
	"time"

	"github.com/go-chi/httprate"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

var _ = []any{httprateBefore, httprateAfter, httprateTable}

func httprateBefore(next http.Handler) []http.Handler {
	key := func(r *http.Request) (string, error) { return user(r), nil }
	return []http.Handler{
		httprate.LimitBy(100, time.Minute, key)(next),
		httprate.LimitByIP(100, time.Minute)(next),
	}
}

func httprateAfter(next http.Handler) []http.Handler {
	key := user
	return []http.Handler{
		httplimit.PerKey(100, 100.0/60, key).Middleware(next),
		httplimit.PerAddress(100, 100.0/60).Middleware(next),
	}
}

func user(r *http.Request) string {
	name, _, _ := r.BasicAuth()
	return name
}

func httprateTable(
	r *http.Request, tenant httprate.KeyFunc, path func(*http.Request) string, teapot http.HandlerFunc,
) []any {
	return []any{
		httprate.LimitAll(100, time.Minute),
		httprate.WithKeyFuncs(httprate.KeyByIP, httprate.KeyByEndpoint),
		httplimit.Rule{Keys: []string{"ip:address", "path"}}, httplimit.WithExtractor("path", path),
		httprate.WithIncrement(r.Context(), 5), httprate.JoinKeys(tenant, httprate.KeyByEndpoint),
		httplimit.Rule{Keys: []string{"tenant", "path"}, Cost: httplimit.Cost{Fixed: 5}},
		httprate.WithLimitHandler(teapot),
	}
}
