// Package gin limits the requests to some routes of a gin engine.
//
// An engine is a handler, so limiter.Middleware(engine) limits all its routes without an adapter.
// Do so if a rule is adaptive or has its cost in the response.
package gin

import (
	"github.com/gin-gonic/gin"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// RateLimit returns the middleware. No later handler runs for a refused request. The client is the
// peer of the connection and not Context.ClientIP, which believes every X-Forwarded-For until the
// application calls Engine.SetTrustedProxies: see httplimit.WithClientAddress.
func RateLimit(l *httplimit.Limiter) gin.HandlerFunc {
	return func(c *gin.Context) {
		own := c.Request // in whose Body net/http looks for what is left
		c.Request = own.WithContext(own.Context())
		decision, granted := l.Decide(c.Writer, c.Request)
		if !granted {
			c.Abort()
			return
		}
		c.Set("ratelimit", decision)
		defer func() { own.MultipartForm = c.Request.MultipartForm }() // net/http removes its files
		c.Next()
	}
}
