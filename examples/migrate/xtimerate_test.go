package migrate

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-181794aa/ratelimit"
)

// same fails the test unless both limiters gave the same results.
func same[T comparable](t *testing.T, what string, xtime, here T) {
	t.Helper()
	if xtime != here {
		t.Errorf("%s: x/time/rate returns %v, and the bucket %v", what, xtime, here)
	}
}

// sameBucket requires that both buckets hold the same tokens now and in some later seconds.
func sameBucket(t *testing.T, lim *rate.Limiter, bucket *ratelimit.Bucket) {
	t.Helper()
	for range 4 {
		if xtime, here := lim.Tokens(), bucket.Level().Tokens; math.Abs(xtime-here) > 1e-5 {
			t.Errorf("%v: x/time/rate has %v tokens, and the bucket %v", time.Now(), xtime, here)
		}
		time.Sleep(time.Second)
	}
}

// inStates runs f with limiters of 4 tokens a second and a burst of 10, in a bubble of its own for
// each number of tokens taken before.
func inStates(t *testing.T, f func(t *testing.T, lim *rate.Limiter, bucket *ratelimit.Bucket)) {
	for _, taken := range []int{0, 5, 8, 9, 10} {
		t.Run(fmt.Sprintf("taken=%d", taken), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim := rate.NewLimiter(4, 10)
				limit, err := ratelimit.PerSecond(10, 4)
				if err != nil {
					t.Fatal(err)
				}
				bucket, err := ratelimit.NewBucket(limit)
				if err != nil {
					t.Fatal(err)
				}
				if taken > 0 {
					lim.AllowN(time.Now(), taken)
					bucket.AllowN(taken)
				}
				f(t, lim, bucket)
				sameBucket(t, lim, bucket)
			})
		})
	}
}

func TestMigrateLimits(t *testing.T) {
	bucketOf := func(limit ratelimit.Limit) *ratelimit.Bucket {
		return must(ratelimit.NewBucket(limit))
	}
	synctest.Test(t, func(t *testing.T) {
		lim := rate.NewLimiter(rate.Every(time.Minute), 10)
		limit := ratelimit.Limit{Capacity: 10, Tokens: 1, Per: time.Minute}
		bucket := must(ratelimit.NewBucket(limit))
		lim.AllowN(time.Now(), 10)
		bucket.AllowN(10)
		sameBucket(t, lim, bucket)
	})
	synctest.Test(t, func(t *testing.T) {
		lim := rate.NewLimiter(rate.Inf, 0)
		limit := ratelimit.Limit{Capacity: 1 << 30, Tokens: 1, Per: time.Nanosecond}
		bucket := bucketOf(limit)
		for range 1000 {
			d, _ := bucket.AllowN(1_000_000)
			same(t, "Inf", lim.AllowN(time.Now(), 1_000_000), d.Allowed)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		lim := rate.NewLimiter(0, 10)
		limit := ratelimit.Limit{Capacity: 10, Tokens: 1, Per: math.MaxInt64}
		bucket := bucketOf(limit)
		lim.AllowN(time.Now(), 10)
		bucket.AllowN(10)
		time.Sleep(24 * 365 * time.Hour)
		same(t, "rate 0", lim.Allow(), bucket.Allow().Allowed)
	})
}

func TestMigrateAllow(t *testing.T) {
	inStates(t, func(t *testing.T, lim *rate.Limiter, bucket *ratelimit.Bucket) {
		same(t, "Allow", lim.Allow(), bucket.Allow().Allowed)
	})
	for _, n := range []int{1, 2, 5, 10, 11} {
		inStates(t, func(t *testing.T, lim *rate.Limiter, bucket *ratelimit.Bucket) {
			d, err := bucket.AllowN(n)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "AllowN", lim.AllowN(time.Now(), n), d.Allowed)
		})
		inStates(t, func(t *testing.T, lim *rate.Limiter, bucket *ratelimit.Bucket) {
			t0 := time.Now()
			for _, t1 := range []time.Time{t0, t0.Add(time.Second / 8), t0.Add(time.Second)} {
				allowAt(t, lim, bucket, t1, n)
			}
			time.Sleep(time.Second)
		})
	}
}

func allowAt(tt *testing.T, lim *rate.Limiter, bucket *ratelimit.Bucket, t time.Time, n int) {
	tt.Helper()
	d, err := bucket.AllowAt(t, n)
	if err != nil {
		tt.Fatal(err)
	}
	same(tt, "AllowAt", lim.AllowN(t, n), d.Allowed)
}

func TestMigrateTokens(t *testing.T) {
	inStates(t, func(t *testing.T, lim *rate.Limiter, bucket *ratelimit.Bucket) {
		same(t, "Tokens", lim.Tokens(), bucket.Level().Tokens)
	})
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

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
