package cas_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

type adjustable interface {
	tb.Limiter
	SetLimit(tb.Limit) error
	Level(context.Context, string) (tb.Level, error)
}

// A bucket that no call has touched since the capacity changed gets the supply of each rate that the
// limit has had since.
func TestSetLimitKeepsTheSupplyOfEachRateOfAnEra(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	clock := tb.WithClock(func() time.Time { return now })
	for _, l := range []adjustable{
		cas.NewTokenBucket(10, 1, clock), mutex.NewTokenBucket(10, 1, clock),
	} {
		if d, err := l.AllowN(t.Context(), "k", 8); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		for _, c := range []struct {
			capacity int
			rate     float64
			want     float64 // two seconds later
		}{
			{100, 5, 12}, {100, 0.5, 13}, {100, 1, 15}, {1000, 10, 35}, {1000, 1, 37}, {20, 1, 20},
		} {
			limit, err := tb.LimitPerSecond(c.capacity, c.rate)
			if err == nil {
				err = l.SetLimit(limit)
			}
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(2 * time.Second)
			if level, _ := l.Level(t.Context(), "k"); level.Tokens != c.want {
				t.Errorf("%T: %v tokens after %+v", l, level.Tokens, c)
			}
		}
	}
}
