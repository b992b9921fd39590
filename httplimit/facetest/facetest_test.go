package facetest

import (
	"net/http"
	"net/http/httptest"
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
			Run(t, Face{Open: func(t *testing.T, policy string) func(Request) Answer {
				p, err := httplimit.ParsePolicy([]byte(policy))
				if err != nil {
					t.Fatal(err)
				}
				l, err := httplimit.New(p)
				if err != nil {
					t.Fatal(err)
				}
				server := httptest.NewServer(wrap(l, Application()))
				t.Cleanup(server.Close)
				return func(r Request) Answer { return Send(t, server.URL, r) }
			}})
		})
	}
}
