// Package chi makes the parameters of chi's routes keys of rules. Otherwise chi needs no adapter:
//
//	router.Use(limiter.Middleware)
//
// With middleware.CleanPath or StripSlashes, chi serves /login/ as /login. A selector with
// pathExact does not pick both, so give such a route its own limiter:
// router.With(limiter.Middleware).
//
// The client is the peer of the connection. middleware.RealIP, which is deprecated, would replace
// it with an address that the client chooses: see httplimit.WithClientAddress instead.
package chi

import (
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// URLParam adds the key name, which is the parameter {name} of the route. The limiter must stand
// behind the route, as in
//
//	router.With(limiter.Middleware).Get("/tenants/{tenant}", handler)
//
// because a request that router.Use limits has no route yet. A rule with this key should have
// OnMissing: httplimit.Reject, which refuses such requests instead of passing them.
func URLParam(name string) httplimit.Option {
	return httplimit.WithExtractor(name, func(r *http.Request) string {
		value := chi.URLParam(r, name)
		if r.URL.RawPath == "" {
			return value
		}
		// The value is still escaped. All escapes of it must have one bucket.
		value, err := url.PathUnescape(value)
		if err != nil {
			return ""
		}
		return value
	})
}
