package migrate

import (
	"net"
	"net/http"
	"time"

	"github.com/go-chi/httprate"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

var _ = []any{httprateBefore, httprateAfter, httprateTable, httprateHere}

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

func httprateTable(r *http.Request, tenant httprate.KeyFunc, teapot http.HandlerFunc) []any {
	return []any{
		httprate.LimitAll(100, time.Minute),
		httprate.WithKeyFuncs(httprate.KeyByIP, httprate.KeyByEndpoint),
		httprate.WithIncrement(r.Context(), 5),
		httprate.JoinKeys(tenant, httprate.KeyByEndpoint),
		httprate.WithLimitHandler(teapot),
	}
}

func httprateHere(
	path func(*http.Request) string,
	refusal func(http.ResponseWriter, *http.Request, *httplimit.Refusal),
) []any {
	return []any{
		httplimit.Rule{Keys: []string{"ip:address", "path"}},
		httplimit.Rule{Keys: []string{"tenant", "path"}, Cost: httplimit.Cost{Fixed: 5}},
		httplimit.WithExtractor("path", path),
		httplimit.WithRefusal(refusal),
	}
}
