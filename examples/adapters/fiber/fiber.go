// Package fiber limits requests to a Fiber app. A cost in the response stays at its estimate, and
// an adaptive rate where it starts. A request that waits goes on waiting if its client disconnects,
// because Fiber does not report that. With EnablePrefork each process has buckets of its own.
package fiber

import (
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v3"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// RateLimit returns the middleware. Fiber's routes ignore case and final slashes. Selectors do not,
// so give a route its own RateLimit. A path with an invalid escape is refused with 400, as by
// net/http. The client is the peer of the connection, and not c.IP(). If several limiters are
// nested, a response has the fields of the last one.
func RateLimit(l *httplimit.Limiter) fiber.Handler {
	return func(c fiber.Ctx) error {
		header, uri := http.Header{}, c.Request().URI()
		for name, value := range c.Request().Header.All() { // copied: Fiber reuses their memory
			header.Add(string(name), string(value))
		}
		u, err := url.ParseRequestURI(string(uri.PathOriginal()))
		if err != nil {
			return fiber.ErrBadRequest
		}
		u.RawQuery = string(uri.QueryString())
		r := &http.Request{Method: c.Method(), URL: u, Host: string(uri.Host()), Header: header}
		// A client on a Unix socket has no IP. Its RemoteAddr is a path of its choice.
		r.RemoteAddr = c.RequestCtx().RemoteIP().String()
		w := writer{c, http.Header{}}
		_, granted := l.Decide(w, r.WithContext(c.Context()))
		for name, values := range w.header {
			c.Set(name, values[0])
		}
		if !granted {
			return nil
		}
		return c.Next()
	}
}

type writer struct {
	fiber.Ctx
	header http.Header
}

func (w writer) Header() http.Header    { return w.header }
func (w writer) WriteHeader(status int) { w.Status(status) }
