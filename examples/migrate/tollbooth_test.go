package migrate

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/didip/tollbooth/v8"
	"github.com/didip/tollbooth/v8/limiter"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

func beforeTollbooth(next http.Handler) http.Handler {
	lmt := tollbooth.NewLimiter(5, nil)
	lmt.SetIPLookup(limiter.IPLookup{Name: "RemoteAddr"})
	handler := tollbooth.LimitHandler(lmt, next)
	return handler
}

func afterTollbooth(next http.Handler) (http.Handler, error) {
	limiter, err := httplimit.New(httplimit.Rules(httplimit.Rule{
		Name:  "per-address",
		Keys:  []string{"ip:address"},
		Limit: ratelimit.Limit{Capacity: 5, Tokens: 5, Per: time.Second},
	}))
	if err != nil {
		return nil, err
	}
	handler := limiter.Middleware(next)
	return handler, nil
}

// ruleHandler returns a handler with a limiter of one rule.
func ruleHandler(rule httplimit.Rule, opts ...httplimit.Option) http.Handler {
	rule.Name = "rule"
	return must(httplimit.New(httplimit.Rules(rule), opts...)).Middleware(served)
}

func TestTollboothByRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lmt := tollbooth.NewLimiter(5, nil)
		lmt.SetIPLookup(limiter.IPLookup{Name: "RemoteAddr"})
		before := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := tollbooth.LimitByRequest(lmt, w, r); err != nil {
				http.Error(w, err.Message, err.StatusCode)
				return
			}
			served(w, r)
		})
		limiter := must(httplimit.New(httplimit.Rules(httplimit.Rule{
			Name: "per-address", Keys: []string{"ip:address"},
			Limit: ratelimit.Limit{Capacity: 5, Tokens: 5, Per: time.Second},
		})))
		after := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, granted := limiter.Decide(w, r); !granted {
				return
			}
			served(w, r)
		})
		wants(t, "burst", granted(t, before, 9), 5, granted(t, after, 9), 5)
	})
}

// TestTollboothCalls runs both columns of the table.
func TestTollboothCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lmt := tollbooth.NewLimiter(5, nil)
		lmt.SetBurst(10)
		lmt.SetIPLookup(limiter.IPLookup{Name: "RemoteAddr"})
		lmt.SetIgnoreURL(true)
		lmt.SetHeader("X-Api-Key", nil)
		lmt.SetMethods([]string{"GET"})
		var b, a int
		reached := func(http.ResponseWriter, *http.Request) { b++ }
		lmt.SetOnLimitReached(reached)
		before := tollbooth.LimitHandler(lmt, served)
		policy := httplimit.Policy{Sets: []httplimit.RuleSet{{
			Selector: httplimit.Selector{Methods: []string{"GET"}},
			Rules: []httplimit.Rule{{
				Name:  "per-key",
				Keys:  []string{"ip:address", "header:x-api-key"},
				Limit: ratelimit.Limit{Capacity: 10, Tokens: 5, Per: time.Second},
			}},
		}}}
		refused := func(*http.Request, httplimit.Event) { a++ }
		hooks := httplimit.WithHooks(httplimit.Hooks{Refused: refused})
		after := must(httplimit.New(&policy, hooks)).Middleware(served)
		for _, key := range []string{"a", "b"} {
			field := "X-Api-Key: " + key
			wants(t, key, granted(t, before, 15, field), 10, granted(t, after, 15, field), 10)
		}
		wants(t, "no key", granted(t, before, 15), 15, granted(t, after, 15), 15)
		wants(t, "refusals", b, 10, a, 10)

		limit := ratelimit.Limit{Capacity: 5, Tokens: 5, Per: time.Second}
		limiter := must(ratelimit.New[[2]string](limit))
		lmt, ctx := tollbooth.NewLimiter(5, nil), t.Context()
		for i := range 9 {
			isReached := tollbooth.LimitByKeys(lmt, []string{"acme", "ada"}) != nil
			d, err := limiter.Allow(ctx, [2]string{"acme", "ada"})
			if err != nil {
				t.Fatal(err)
			}
			wants(t, "keys", !isReached, i < 5, d.Allowed, i < 5)
		}
	})
}
