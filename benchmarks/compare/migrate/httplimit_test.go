package migrate

import (
	"net/http"
	"time"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

func refusals() *httplimit.Limiter {
	refusal := func(w http.ResponseWriter, _ *http.Request, refusal *httplimit.Refusal) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(refusal.Status)
		_, _ = w.Write([]byte(`{"error":"rate_limited"}`))
	}
	limiter := httplimit.PerAddress(10, 5, httplimit.WithRefusal(refusal))
	return limiter
}

var _ = []any{
	refusals,
	ratelimit.Limit{Capacity: 1, Tokens: 9, Per: time.Second},
}
