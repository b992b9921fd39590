package migrate

import (
	"net"
	"net/http"
	"time"

	"github.com/go-chi/httprate"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

var _ = []any{httprateBefore, httprateAfter, httprateTable}

func httprateBefore(next http.Handler) http.Handler {
	key := func(r *http.Request) (string, error) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		return httprate.CanonicalizeIP(host), err
	}
	handler := httprate.LimitBy(100, time.Minute, key)(next)
	return handler
}

func httprateAfter(next http.Handler) http.Handler {
	handler := httplimit.PerAddress(100, 100.0/60).Middleware(next)
	return handler
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
