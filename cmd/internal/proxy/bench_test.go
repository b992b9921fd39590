package proxy

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

const neverRefuses = `{"name": "r", "limit_keys": ["ip:address"],
	"algorithm_config": {"tokens_per_second": 1e9, "burst": 1e9}}`

// instantTransport is an upstream that answers at once.
type instantTransport struct{}

func (instantTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r,
	}, nil
}

// The difference between the two is the cost of limits for a request.
func BenchmarkServeHTTP(b *testing.B) {
	for _, limits := range []bool{false, true} {
		name := map[bool]string{false: "limits=no", true: "limits=yes"}[limits]
		b.Run(name, func(b *testing.B) {
			c := Config{
				Upstream: &url.URL{Scheme: "http", Host: "upstream"},
				Log:      testkit.NewTranscript().Logger(), Access: AccessRefused,
			}
			if limits {
				c.Policy, _ = cli.ParsePolicy([]byte(neverRefuses))
			}
			p, err := New(c)
			if err != nil {
				b.Fatal(err)
			}
			p.upstream.Transport = instantTransport{}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				w := httptest.NewRecorder()
				for pb.Next() {
					p.ServeHTTP(w, r)
				}
			})
		})
	}
}
