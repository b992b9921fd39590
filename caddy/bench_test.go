package tokenbucket

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// silent is a ResponseWriter that keeps the header only.
type silent http.Header

func (w silent) Header() http.Header         { return http.Header(w) }
func (w silent) WriteHeader(int)             {}
func (w silent) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkServeHTTP measures what the handler adds to a request that Caddy has prepared.
func BenchmarkServeHTTP(b *testing.B) {
	for name, burst := range map[string]string{"granted": "1000000000", "refused": "1"} {
		b.Run(name, func(b *testing.B) {
			h := newHandler(b, `{"name": "r", "limit_keys": ["ip:address"],
				"algorithm_config": {"tokens_per_second": 0.001, "burst": `+burst+`}}`)
			w := silent{}
			r := caddyhttp.PrepareRequest(httptest.NewRequest(http.MethodGet, "/", nil),
				caddy.NewReplacer(), w, &caddyhttp.Server{})
			next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
			b.ReportAllocs()
			for b.Loop() {
				clear(w)
				if err := h.ServeHTTP(w, r, next); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
