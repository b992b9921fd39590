package migrate

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/rate"
)

// same fails the test unless both limiters gave the same results.
func same[T comparable](t *testing.T, what string, xtime, here T) {
	t.Helper()
	if xtime != here {
		t.Errorf("%s: x/time/rate returns %v, and the bucket %v", what, xtime, here)
	}
}

func TestMigrateKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		limit := must(ratelimit.PerSecond(10, 4))
		limiters := make(map[string]*rate.Limiter)
		var mu sync.Mutex
		xtime := func(key string) bool {
			mu.Lock()
			lim, ok := limiters[key]
			if !ok {
				lim = rate.NewLimiter(4, 10)
				limiters[key] = lim
			}
			mu.Unlock()
			return lim.Allow()
		}
		limiter, err := ratelimit.New[string](limit)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			key := fmt.Sprint(i % 7)
			d, err := limiter.Allow(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			same(t, key, xtime(key), d.Allowed)
			time.Sleep(time.Second / 64)
		}
	})
}

func TestMigrateKeysOfTwoParts(t *testing.T) {
	type account struct{ tenant, user string }
	tenant, user, limit := "acme", "ada", ratelimit.Limit{Capacity: 1, Tokens: 1, Per: time.Hour}
	byText := must(ratelimit.New[string](limit, ratelimit.WithMaxKeys(100_000)))
	byAccount := must(ratelimit.New[account](limit))
	for _, want := range []bool{true, false} {
		text, _ := byText.Allow(t.Context(), fmt.Sprint(tenant, user))
		fields, _ := byAccount.Allow(t.Context(), account{tenant, user})
		if text.Allowed != want || fields.Allowed != want {
			t.Errorf("got %+v and %+v, want %t", text, fields, want)
		}
	}
}

func TestMigrateWaitForKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		limiters := map[string]*rate.Limiter{"a": rate.NewLimiter(4, 10), "b": rate.NewLimiter(4, 10)}
		limiter := must(ratelimit.New[string](must(ratelimit.PerSecond(10, 4))))
		for _, key := range []string{"a", "b"} {
			sameTimes(t, 15,
				func() error { return limiters[key].Wait(ctx) },
				func() error { return limiter.Wait(ctx, key, 1) })
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
