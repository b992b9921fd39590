package httplimit

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// nest returns a handler with one limiter in another, for policies of one rule each.
func nest(t *testing.T, outer, inner string, seen *Decision) http.Handler {
	clock := WithLimiterOptions(tb.WithClock(func() time.Time { return time.Unix(1_800_000_000, 0) }))
	var h http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		*seen, _ = FromContext(r.Context())
	})
	for _, rule := range []string{inner, outer} {
		both := WithFields(Fields{Policy: true, XRateLimit: true})
		h = mustNew(t, rule, clock, steady(), both, WithContext()).Middleware(h)
	}
	return h
}

// The client sees the rules of both limiters, and the fields of the tightest.
func TestNestedLimiters(t *testing.T) {
	narrow, wide := jsonRule("narrow", "[]", 3, ""), jsonRule("wide", "[]", 50, "")
	for _, c := range []struct {
		outer, inner string
		items        []string
		refused      []string
	}{
		{narrow, wide, []string{"narrow r=2 t=2", "wide r=49 t=49"}, []string{"narrow r=0 t=1"}},
		{wide, narrow, []string{"wide r=49 t=49", "narrow r=2 t=2"},
			[]string{"wide r=46 t=46", "narrow r=0 t=1"}},
	} {
		var seen Decision
		h := nest(t, c.outer, c.inner, &seen)
		send := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request())
			return w
		}
		w := send()
		wants(t, w, "RateLimit-Limit: 3", "RateLimit-Remaining: 2", "RateLimit-Reset: 1",
			"X-RateLimit-Limit: 3", "X-RateLimit-Remaining: 2", "X-RateLimit-Reset: 1800000001")
		if got := items(t, w, "RateLimit"); !slices.Equal(got, c.items) {
			t.Errorf("%q, want %q", got, c.items)
		}
		if got := items(t, w, "RateLimit-Policy"); len(got) != 2 || got[0][:4] != c.items[0][:4] {
			t.Errorf("%q", got)
		}
		if seen.Rule != "narrow" || seen.Remaining != 2 {
			t.Errorf("the handler sees %+v", seen)
		}
		send()
		send()
		w = send()
		if w.Code != http.StatusTooManyRequests {
			t.Errorf("status %d", w.Code)
		}
		wants(t, w, "RateLimit-Limit: 3", "RateLimit-Remaining: 0", "RateLimit-Reset: 1",
			"X-RateLimit-Limit: 3", "X-RateLimit-Remaining: 0", "Retry-After: 1")
		if got := items(t, w, "RateLimit"); !slices.Equal(got, c.refused) {
			t.Errorf("%q, want %q", got, c.refused)
		}
	}
	// Of two with as many tokens left, the outer one counts.
	var seen Decision
	w := httptest.NewRecorder()
	nest(t, oneRule("[]", `"rps": 1, "burst": 4, "fixed_cost": 2`), jsonRule("inner", "[]", 3, ""),
		&seen).ServeHTTP(w, request())
	wants(t, w, "RateLimit-Limit: 4", "RateLimit-Remaining: 2")
	if seen.Rule != "r" {
		t.Errorf("the handler sees %+v", seen)
	}
}
