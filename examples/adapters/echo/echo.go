// Package echo limits the requests to an Echo server.
package echo

import (
	"github.com/labstack/echo/v5"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// RateLimit returns the middleware. With httplimit.WithContext,
// httplimit.FromContext(c.Request().Context()) has the decision.
// An error of a handler is answered inside the middleware, so that the limiter sees the response:
// its status for adaptive rules, and its cost. The client is the peer of the connection, whatever
// Echo.IPExtractor is: see httplimit.WithClientAddress.
func RateLimit(l *httplimit.Limiter) echo.MiddlewareFunc {
	limit := echo.WrapMiddleware(l.Middleware)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return limit(func(c *echo.Context) error {
			err := next(c)
			if err != nil {
				c.Echo().HTTPErrorHandler(c, err)
			}
			return err
		})
	}
}
