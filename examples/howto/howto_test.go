// Package howto has the code of docs/how-do-i.md.
package howto

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

var handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

func statuses(l *httplimit.Limiter, users ...string) (got []int) {
	for _, user := range users {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth(user, "secret")
		l.Middleware(handler).ServeHTTP(w, r)
		got = append(got, w.Code)
	}
	return got
}

func Example_byUser() {
	user := func(r *http.Request) string {
		name, _, _ := r.BasicAuth() // or what your authentication has put into the context
		return name
	}
	limiter := httplimit.PerKey(2, 0.1, user) // each user: bursts of 2, then 1 in ten seconds
	http.Handle("/", limiter.Middleware(handler))

	fmt.Println(statuses(limiter, "ada", "ada", "ada", "bob"))
	// Output: [200 200 429 200]
}

func Example_byPlan() {
	user := func(r *http.Request) string { name, _, _ := r.BasicAuth(); return name }
	planOf := func(r *http.Request) string { return map[string]string{"ada": "pro"}[user(r)] }

	limiter, err := httplimit.New(
		httplimit.Rules(httplimit.Rule{
			Name: "per-user", Keys: []string{"user"},
			Limit: ratelimit.Limit{Capacity: 1, Tokens: 60, Per: time.Hour},
			Tiers: httplimit.Tiers{By: "plan", Limits: map[string]ratelimit.Limit{
				"pro": {Capacity: 3, Tokens: 600, Per: time.Hour},
			}},
		}),
		httplimit.WithExtractor("user", user),
		httplimit.WithExtractor("plan", planOf),
	)
	if err != nil {
		panic(err)
	}
	fmt.Println(statuses(limiter, "ada", "ada", "ada", "ada"), statuses(limiter, "bob", "bob"))
	// Output: [200 200 200 429] [200 429]
}

func Example_whoIsLimited() {
	user := func(r *http.Request) string { name, _, _ := r.BasicAuth(); return name }
	refused := func(_ *http.Request, e httplimit.Event) {
		slog.Info("refused", "rule", e.Rule, "key", httplimit.FormatKey(e.Key), "for", e.RetryAfter)
	}
	limiter := httplimit.PerKey(1, 0.1, user, httplimit.WithHooks(httplimit.Hooks{Refused: refused}))

	before := statuses(limiter, "ada", "ada")
	err := limiter.Reset("per-key", "key=ada") // as the hook has written it
	fmt.Println(before, limiter.Stats()[0].Refused, err, statuses(limiter, "ada"))
	// Output: [200 429] 1 <nil> [200]
}

// Package testing/synctest moves the clock of a bubble, in which the limiter is made.
func TestRefusedClientComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := ratelimit.NewTokenBucket(1, 0.1)
		limiter.TryTake("ada")
		d, _ := limiter.Allow(t.Context(), "ada")
		time.Sleep(d.RetryAfter) // takes no time
		if !limiter.TryTake("ada") {
			t.Errorf("refused again after %v", d.RetryAfter)
		}
	})
}
