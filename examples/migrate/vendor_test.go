package migrate

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// mostInASecond calls wait for ten seconds, and returns how many calls are in the second that has
// the most, its end included.
func mostInASecond(t *testing.T, wait func(context.Context) error) int {
	t.Helper()
	var calls []time.Time
	for begin := time.Now(); time.Since(begin) < 10*time.Second; {
		if err := wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, time.Now())
	}
	first, most := 0, 0
	for i, call := range calls {
		for call.Sub(calls[first]) > time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// A bucket grants its capacity, and then what its rate supplies in the second.
func TestAVendorAllowsTenASecond(t *testing.T) {
	for _, tt := range []struct {
		limit ratelimit.Limit
		want  int
	}{
		{ratelimit.Limit{Capacity: 1, Tokens: 9, Per: time.Second}, 10},
		{ratelimit.Limit{Capacity: 1, Tokens: 10, Per: time.Second}, 11},
		{ratelimit.Limit{Capacity: 5, Tokens: 5, Per: time.Second}, 10},
		{ratelimit.Limit{Capacity: 10, Tokens: 10, Per: time.Second}, 20},
	} {
		synctest.Test(t, func(t *testing.T) {
			lim := rate.NewLimiter(rate.Limit(tt.limit.Tokens), tt.limit.Capacity)
			bucket := must(ratelimit.NewBucket(tt.limit))
			b := mostInASecond(t, lim.Wait)
			a := mostInASecond(t, func(ctx context.Context) error {
				return bucket.Wait(ctx, 1)
			})
			wants(t, fmt.Sprint(tt.limit), b, tt.want, a, tt.want)
		})
	}
}

// A refusal of the application has the status and the fields of the limiter.
func TestARefusalOfTheApplication(t *testing.T) {
	refusal := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"error":"rate_limited"}`))
	})
	limiter := httplimit.PerAddress(10, 5, httplimit.WithRefusal(refusal))
	handler := limiter.Middleware(served)
	granted(t, handler, 10)
	w := get(handler)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" ||
		w.Header().Get("Content-Type") != "application/json" ||
		w.Body.String() != `{"error":"rate_limited"}` {
		t.Errorf("status %d, %v, %s", w.Code, w.Header(), w.Body)
	}
}
