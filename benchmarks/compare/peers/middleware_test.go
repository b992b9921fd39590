package peers

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/didip/tollbooth/v8"
	tolls "github.com/didip/tollbooth/v8/limiter"
	"github.com/go-chi/httprate"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// responder is a ResponseWriter that costs nothing.
type responder struct {
	header http.Header
	status int
}

func (w *responder) Header() http.Header         { return w.header }
func (w *responder) WriteHeader(status int)      { w.status = status }
func (w *responder) Write(b []byte) (int, error) { return len(b), nil }

// byPeer is httprate's key for the address of the peer, with a /64 for IPv6.
func byPeer(r *http.Request) (string, error) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return httprate.CanonicalizeIP(host), err
}

// BenchmarkMiddleware measures requests of one address through a limit of 1 or 10⁹ tokens an hour,
// each middleware in its default form.
func BenchmarkMiddleware(b *testing.B) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	middlewares := []struct {
		name string
		wrap func(n int) http.Handler
	}{
		{"httplimit", func(n int) http.Handler {
			return httplimit.PerAddress(n, float64(n)/3600).Middleware(next)
		}},
		{"httprate", func(n int) http.Handler {
			return httprate.LimitBy(n, time.Hour, byPeer)(next)
		}},
		{"ulule", func(n int) http.Handler {
			rate := limiter.Rate{Period: time.Hour, Limit: int64(n)}
			return stdlib.NewMiddleware(limiter.New(memory.NewStore(), rate)).Handler(next)
		}},
		{"tollbooth", func(n int) http.Handler {
			lmt := tollbooth.NewLimiter(float64(n)/3600, nil).SetBurst(n)
			lmt.SetIPLookup(tolls.IPLookup{Name: "RemoteAddr"})
			return tollbooth.LimitHandler(lmt, next)
		}},
	}
	for _, c := range []struct {
		name  string
		limit int
		want  int
	}{{"granted", 1e9, http.StatusOK}, {"refused", 1, http.StatusTooManyRequests}} {
		for _, m := range middlewares {
			b.Run(c.name+"/"+m.name, func(b *testing.B) {
				h := m.wrap(c.limit)
				r := httptest.NewRequest(http.MethodGet, "/v1/things", nil)
				h.ServeHTTP(&responder{header: http.Header{}}, r)
				w := &responder{}
				b.ReportAllocs()
				for b.Loop() {
					w.header, w.status = make(http.Header), http.StatusOK
					h.ServeHTTP(w, r)
				}
				if w.status != c.want {
					b.Fatalf("status %d, want %d", w.status, c.want)
				}
			})
		}
	}
}
