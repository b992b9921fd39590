package proxy

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/policyfile"
)

const never = `{"name": "r", "limit_keys": ["ip:address"],
	"algorithm_config": {"tokens_per_second": 1e9, "burst": 1e9}}`

// What limits cost a request, without the upstream: compare with and without them.
func BenchmarkServeHTTP(b *testing.B) {
	for _, limits := range []bool{false, true} {
		name := map[bool]string{false: "limits=no", true: "limits=yes"}[limits]
		b.Run(name, func(b *testing.B) {
			c := Config{Log: newTranscript().logger(), Access: AccessRefused}
			if limits {
				c.Policy, _, _ = policyfile.Parse([]byte(never))
			}
			p, err := New(c)
			if err != nil {
				b.Fatal(err)
			}
			done := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			p.handler = done
			if limits {
				p.handler = p.Limiter.Middleware(p.granted(done))
			}
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
