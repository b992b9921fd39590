package redis

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

var _ httplimit.Charger = (*Limiter)(nil)

// A request takes from the buckets of two rules, or from none. The levels in its answer cost no
// command.
func TestRulesOfAPolicy(t *testing.T) {
	c := dial(t, redistest.Start(t))
	limiters := make(map[string]*Limiter)
	tenants := slow
	tenants.Capacity = 3
	newRule := func(r httplimit.Rule) (tb.Limiter, error) {
		l, err := New(c, r.Limit, WithPrefix(r.Name+":"), WithTimeout(patient))
		limiters[r.Name] = l
		return l, err
	}
	policy, err := httplimit.New(httplimit.Rules(
		httplimit.Rule{Name: "user", Keys: []string{"header:user"}, Limit: slow},
		httplimit.Rule{Name: "tenant", Keys: []string{"header:tenant"}, Limit: tenants},
	), httplimit.WithTimeout(patient), httplimit.WithLimiter(newRule))
	if err != nil {
		t.Fatal(err)
	}
	handler := policy.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	commands := func() (n uint64) {
		for _, l := range limiters {
			n += l.Stats().Commands
		}
		return n
	}
	for i, want := range []int{200, 200, 200, 429, 429} {
		before := commands()
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("User", "a")
		r.Header.Set("Tenant", "b")
		handler.ServeHTTP(w, r)
		limit := w.Header().Get("RateLimit")
		if w.Code != want || want == 429 && !strings.Contains(limit, `"tenant";r=0`) {
			t.Errorf("request %d: status %d, want %d, RateLimit %s", i, w.Code, want, limit)
		}
		most := uint64(4) // a check and a take of each
		if want == 429 {
			most = 2
		}
		if n := commands() - before; i > 0 && n != most {
			t.Errorf("request %d: %d commands, want %d", i, n, most)
		}
	}
	names := do(t, c, "KEYS", "user:*")
	all, err := names.AsStrSlice()
	if err != nil || len(all) != 1 {
		t.Fatalf("the buckets of users are %q, %v", all, err)
	}
	key := strings.TrimSuffix(strings.TrimPrefix(all[0], "user:{"), "}")
	if d, err := limiters["user"].Peek(t.Context(), key); err != nil || d != granted(6) {
		t.Errorf("the user after three grants: %+v, %v", d, err)
	}
	for _, l := range limiters {
		l.Close()
	}
}
