package migrate

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/httprate"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

func beforeHTTPRate(next http.Handler) http.Handler {
	key := func(r *http.Request) (string, error) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		return httprate.CanonicalizeIP(host), err
	}
	handler := httprate.LimitBy(100, time.Minute, key)(next)
	return handler
}

func afterHTTPRate(next http.Handler) (http.Handler, error) {
	limiter, err := httplimit.New(httplimit.Rules(httplimit.Rule{
		Name:  "per-address",
		Keys:  []string{"ip:address"},
		Limit: ratelimit.Limit{Capacity: 100, Tokens: 100, Per: time.Minute},
	}))
	if err != nil {
		return nil, err
	}
	handler := limiter.Middleware(next)
	return handler, nil
}

// The older functions of httprate limit by the peer of the connection, too.
func TestHTTPRateByAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := httprate.LimitByIP(100, time.Minute)(served)
		after := httplimit.PerAddress(100, 100.0/60).Middleware(served)
		for _, peer := range []string{"from 192.0.2.1:1", "from 192.0.2.2:1", "from [2001:db8::1]:1"} {
			wants(t, peer, granted(t, before, 150, peer), 100, granted(t, after, 150, peer), 100)
		}
		const neighbour = "from [2001:db8::2]:1"
		wants(t, "a /64", granted(t, before, 9, neighbour), 0, granted(t, after, 9, neighbour), 0)
	})
	synctest.Test(t, func(t *testing.T) {
		before := httprate.LimitAll(100, time.Minute)(served)
		after := ruleHandler(httplimit.Rule{
			Limit: ratelimit.Limit{Capacity: 100, Tokens: 100, Per: time.Minute},
		})
		var b, a int
		for _, peer := range []string{"from 192.0.2.1:1", "from 192.0.2.2:1"} {
			b += granted(t, before, 75, peer)
			a += granted(t, after, 75, peer)
		}
		wants(t, "all", b, 100, a, 100)
	})
	synctest.Test(t, func(t *testing.T) {
		before := httprate.Limit(100, time.Minute,
			httprate.WithKeyFuncs(httprate.KeyByIP, httprate.KeyByEndpoint))(served)
		path := func(r *http.Request) string { return r.URL.Path }
		after := ruleHandler(httplimit.Rule{
			Keys:  []string{"ip:address", "path"},
			Limit: ratelimit.Limit{Capacity: 100, Tokens: 100, Per: time.Minute},
		}, httplimit.WithExtractor("path", path))
		for _, peer := range []string{"from 192.0.2.1:1", "from 192.0.2.2:1"} {
			for _, path := range []string{"/a", "/b"} {
				wants(t, peer+path, granted(t, before, 150, peer, path), 100,
					granted(t, after, 150, peer, path), 100)
			}
		}
	})
}

// TestHTTPRateCalls runs both columns of the table.
func TestHTTPRateCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		increment := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ctx := httprate.WithIncrement(r.Context(), 5)
				next.ServeHTTP(w, r.WithContext(ctx))
			})
		}
		before := increment(httprate.LimitBy(100, time.Minute, httprate.Key("all"))(served))
		rule := httplimit.Rule{
			Limit: ratelimit.Limit{Capacity: 100, Tokens: 100, Per: time.Minute},
			Cost:  httplimit.Cost{Fixed: 5},
		}
		wants(t, "increments", granted(t, before, 50), 20, granted(t, ruleHandler(rule), 50), 20)
	})
	synctest.Test(t, func(t *testing.T) {
		tenant := func(r *http.Request) (string, error) { return r.Host, nil }
		before := httprate.LimitBy(100, time.Minute, httprate.JoinKeys(tenant, httprate.KeyByEndpoint))
		after := ruleHandler(httplimit.Rule{
			Keys:  []string{"tenant", "path"},
			Limit: ratelimit.Limit{Capacity: 100, Tokens: 100, Per: time.Minute},
		},
			httplimit.WithExtractor("tenant", func(r *http.Request) string { return r.Host }),
			httplimit.WithExtractor("path", func(r *http.Request) string { return r.URL.Path }))
		for _, path := range []string{"/a", "/b"} {
			b, a := granted(t, before(served), 1, path), granted(t, after, 150, path)
			wants(t, path, b, 1, a, 100)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		teapot := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }
		before := httprate.LimitBy(1, time.Minute, httprate.Key("all"),
			httprate.WithLimitHandler(teapot))(served)
		limiter := must(httplimit.New(httplimit.Rules(httplimit.Rule{
			Name: "all", Limit: ratelimit.Limit{Capacity: 1, Tokens: 1, Per: time.Minute},
		}), httplimit.WithRefusal(http.HandlerFunc(teapot))))
		after := limiter.Middleware(served)
		for _, want := range []int{http.StatusOK, http.StatusTeapot} {
			b, a := httptest.NewRecorder(), httptest.NewRecorder()
			before.ServeHTTP(b, httptest.NewRequest(http.MethodGet, "/", nil))
			after.ServeHTTP(a, httptest.NewRequest(http.MethodGet, "/", nil))
			wants(t, "status", b.Code, want, a.Code, want)
			if wait := a.Header().Get("Retry-After"); (wait != "") != (want == http.StatusTeapot) {
				t.Errorf("status %d: Retry-After %q", want, wait)
			}
		}
	})
}
