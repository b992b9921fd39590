package migrate

import (
	"context"
	"net/http"

	"github.com/didip/tollbooth/v8"
	"github.com/didip/tollbooth/v8/limiter"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

var _ = []any{tollboothTable, tollboothHere}

func tollboothBefore(next http.Handler) http.Handler {
	lmt := tollbooth.NewLimiter(5, nil)
	lmt.SetIPLookup(limiter.IPLookup{Name: "RemoteAddr"})
	return tollbooth.LimitHandler(lmt, next)
}

func tollboothTable(
	lmt *limiter.Limiter, w http.ResponseWriter, r *http.Request, reached http.HandlerFunc,
) {
	lmt.SetBurst(10)
	tollbooth.LimitByRequest(lmt, w, r)
	lmt.SetIgnoreURL(true)
	lmt.SetHeader("X-Api-Key", nil)
	lmt.SetMethods([]string{"GET"})
	lmt.SetOnLimitReached(reached)
	tollbooth.LimitByKeys(lmt, []string{"acme", "ada"})
}

func tollboothHere(
	limiter *httplimit.Limiter, w http.ResponseWriter, r *http.Request,
	refused func(*http.Request, httplimit.Event),
) []any {
	limiter.Decide(w, r)
	return []any{
		httplimit.PerAddress(10, 5),
		httplimit.Rule{Keys: []string{"ip:address", "header:x-api-key"}},
		httplimit.RuleSet{Selector: httplimit.Selector{Methods: []string{"GET"}}},
		httplimit.WithHooks(httplimit.Hooks{Refused: refused}),
		func(ctx context.Context, limiter *ratelimit.Limiter[[2]string]) {
			limiter.Allow(ctx, [2]string{"acme", "ada"})
		},
	}
}
