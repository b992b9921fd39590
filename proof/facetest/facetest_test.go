package facetest

import (
	"net/http"
	"testing"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// decide is Limiter.Admit as a middleware.
func decide(l *httplimit.Limiter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, s, ok := l.Admit(w, r); ok {
			defer s.Finish()
			next.ServeHTTP(s.Writer(w), r)
		}
	})
}

func TestHTTPLimit(t *testing.T) {
	for name, wrap := range map[string]func(*httplimit.Limiter, http.Handler) http.Handler{
		"Middleware": (*httplimit.Limiter).Middleware, "Admit": decide,
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, HTTP(func(t *testing.T, l *httplimit.Limiter) string {
				return Serve(t, wrap(l, Application()))
			}))
		})
	}
}
