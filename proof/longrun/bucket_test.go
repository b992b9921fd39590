package longrun

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

const day = 24 * time.Hour

// tenYears returns how long the tests simulate: ten years, or one with -short.
func tenYears() time.Duration {
	if testing.Short() {
		return 365 * day
	}
	return 3652 * day
}

// pause returns a random time up to longest. Most times have the magnitude of longest, and some
// have any magnitude from a nanosecond on.
func pause(rng *rand.Rand, longest time.Duration) time.Duration {
	if rng.IntN(4) > 0 {
		return 1 + time.Duration(rng.Int64N(int64(longest)))
	}
	return time.Duration(math.Pow(float64(longest), rng.Float64()))
}

// TestTenYearsOfOneBucket drains a bucket after every pause. The tokens that it was granted are
// always the capacity and the supply in whole tokens, and not one more or less.
func TestTenYearsOfOneBucket(t *testing.T) {
	for _, tt := range []struct {
		limit   tb.Limit
		longest time.Duration // the longest pause, in which the bucket does not become full
	}{
		{tb.Limit{Capacity: 1 << 20, Tokens: 3, Per: time.Second}, 3 * day},
		{tb.Limit{Capacity: 5, Tokens: 1, Per: 7 * day}, 27 * day},
		{tb.Limit{Capacity: tb.MaxCapacity, Tokens: 999_983, Per: time.Second}, 1073 * time.Second},
	} {
		now := span.Origin
		clock := tb.WithClock(func() time.Time { return now })
		c, err := cas.New[string](tt.limit, clock)
		if err != nil {
			t.Fatal(err)
		}
		m, err := mutex.New[string](tt.limit, clock)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		calls, granted := 0, int64(0)
		take := func(n int) tb.Decision {
			calls++
			d, _ := c.AllowN(ctx, "a", float64(n))
			if want, _ := m.AllowN(ctx, "a", float64(n)); d != want {
				t.Fatalf("%+v, %d at %v: got %+v, want %+v", tt.limit, n, now, d, want)
			}
			if d.Allowed {
				granted += int64(n)
			}
			return d
		}
		take(tt.limit.Capacity)
		rng := rand.New(rand.NewPCG(10, 0))
		for now.Sub(span.Origin) < tenYears() {
			now = now.Add(pause(rng, tt.longest))
			left := take(tt.limit.Capacity).Remaining // the call is refused
			if left > 0 {
				left = take(1 + rng.IntN(left)).Remaining
			}
			if left > 0 {
				take(left)
			}
			supply := new(big.Int).Mul(big.NewInt(int64(now.Sub(span.Origin))), big.NewInt(tt.limit.Tokens))
			want := supply.Quo(supply, big.NewInt(int64(tt.limit.Per))).Int64() + int64(tt.limit.Capacity)
			if granted != want {
				t.Fatalf("%+v: %d granted until %v, want %d", tt.limit, granted, now, want)
			}
		}
		t.Logf("%+v: %d tokens in %d calls, the delta ran out %d times or more",
			tt.limit, granted, calls, now.Sub(span.Origin)/(span.Delta(tt.limit)+tt.longest))
	}
}
