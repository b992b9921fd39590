package tokenbucket

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// statusClientGone is the status that httplimit writes if the client has disconnected.
const statusClientGone = 499

// answer is the ResponseWriter for a request that is not granted. It keeps the status and the body,
// so that an error route can answer the request. The header fields go to w at once.
type answer struct {
	handler *Handler
	w       http.ResponseWriter
	event   httplimit.Event // of the rule that has not granted the request
	status  int
	problem []byte
}

func (a *answer) Header() http.Header { return a.w.Header() }

func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter. The limiter writes once.
func (a *answer) Write(b []byte) (int, error) {
	a.problem = slices.Clone(b)
	return len(b), nil
}

// send answers the request, or returns the error for the error route of its server. It also answers
// a request in an error route, because no route handles errors of error routes. The placeholders
// are also for logs.
func (a *answer) send(r *http.Request) error {
	repl := replacer(r)
	repl.Set("http.token_bucket.rule", a.event.Rule)
	repl.Set("http.token_bucket.key", httplimit.FormatKey(a.event.Key))
	retryAfter := a.Header().Get("Retry-After")
	repl.Set("http.token_bucket.retry_after", retryAfter)
	reason := "cannot decide"
	switch a.status {
	case http.StatusTooManyRequests:
		reason = "has too few tokens left"
		a.log(zap.InfoLevel, r, "refused a request", a.event, zap.String("retry_after", retryAfter))
	case http.StatusBadRequest:
		reason = "needs a key or a path with one meaning"
		a.log(zap.InfoLevel, r, reason, a.event)
	}
	a.Header().Del("Content-Length") // of a response that is intercepted
	a.Header().Del("Content-Encoding")
	server, ok := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	inErrorRoute := r.Context().Value(caddyhttp.ErrorCtxKey) != nil
	if ok && server.Errors != nil && !inErrorRoute && a.status != statusClientGone {
		err := caddyhttp.Error(a.status,
			fmt.Errorf("limiter %s: rule %s %s", a.handler.Name, a.event.Rule, reason))
		if handlesError(server, r, err) {
			repl.Set("http.token_bucket.problem", string(a.problem))
			a.Header().Del("Content-Type")
			return err
		}
	}
	a.w.WriteHeader(a.status)
	_, _ = a.w.Write(a.problem) // an error means that the client has disconnected
	return nil
}

// handlesError reports whether an error route of the server handles err.
func handlesError(s *caddyhttp.Server, r *http.Request, err error) bool {
	r = s.Errors.WithError(r, err)
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		// Caddy restores these before it asks the error routes.
		r.Method, r.RemoteAddr = original.Method, original.RemoteAddr
		r.RequestURI, r.URL = original.RequestURI, original.URL
	}
	return anyHandles(s.Errors.Routes, r)
}

// anyHandles reports whether one of the routes has a handler for a request. A subroute is one if
// its routes have one.
func anyHandles(routes caddyhttp.RouteList, r *http.Request) bool {
	return slices.ContainsFunc(routes, func(route caddyhttp.Route) bool {
		if matches, err := route.MatcherSets.AnyMatchWithError(r); err != nil || !matches {
			return false
		}
		return slices.ContainsFunc(route.Handlers, func(h caddyhttp.MiddlewareHandler) bool {
			sub, ok := h.(*caddyhttp.Subroute)
			return !ok || anyHandles(sub.Routes, r)
		})
	})
}

func replacer(r *http.Request) *caddy.Replacer {
	return r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
}
