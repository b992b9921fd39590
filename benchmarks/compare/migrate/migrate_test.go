package migrate

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// Of 150 requests at one instant, without a user or a key, both sides grant as many.
func TestBothSidesGrantAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		before := append(httprateBefore(next),
			throttledBefore(next), ululeBefore(next), tollboothBefore(next))
		byKey := limited(next, httplimit.Rule{
			Keys: []string{"header:x-api-key"}, OnMissing: httplimit.Shared,
			Limit: ratelimit.Limit{Capacity: 6, Tokens: 20, Per: time.Minute},
		})
		after := append(httprateAfter(next), byKey,
			httplimit.PerAddress(10, 10.0/60).Middleware(next),
			httplimit.PerAddress(5, 5).Middleware(next))
		for i, want := range []int{100, 100, 100, 6, 10, 5} {
			if b, a := granted(before[i]), granted(after[i]); b != want || a != want {
				t.Errorf("migration %d: %d granted before and %d after, want %d", i, b, a, want)
			}
		}
	})
}

func granted(handler http.Handler) (n int) {
	for range 150 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code == http.StatusOK {
			n++
		}
	}
	return n
}

func limited(next http.Handler, rule httplimit.Rule, opts ...httplimit.Option) http.Handler {
	rule.Name = "limited"
	limiter, err := httplimit.New(httplimit.Rules(rule), opts...)
	if err != nil {
		panic(err)
	}
	return limiter.Middleware(next)
}
