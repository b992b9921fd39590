package redis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// TestReplayDecidesAsMutex replays random calls, of which some are a minute earlier than the call
// before, or much later. In real time most buckets would be full again before the next call.
func TestReplayDecidesAsMutex(t *testing.T) {
	c := dial(t, redistest.Start(t))
	const calls = 500
	granted, late := 0, 0
	for i, limit := range []tb.Limit{
		perSecond(10, 1),
		perSecond(100, 1_000_000),
		{Capacity: 2, Tokens: 3, Per: 10 * time.Second},
		{Capacity: 10, Tokens: 1, Per: 24 * time.Hour},
		{Capacity: 50, Tokens: 7, Per: 999_983 * time.Microsecond}, // the wide script
	} {
		rng := rand.New(rand.NewPCG(uint64(i), 15))
		r, err := NewReplay(c, limit, fmt.Sprintf("replay-%d:", i))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(0, 0)
		oracle, err := mutex.New[string](limit, tb.WithClock(func() time.Time { return now }))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := oracle.Allow(t.Context(), "the first reading"); err != nil {
			t.Fatal(err)
		}
		now = time.UnixMicro(noon)
		for range calls {
			step := time.Duration(rng.Int64N(int64(limit.Per)/limit.Tokens*4 + 2000))
			if rng.IntN(4) == 0 {
				step = -time.Duration(rng.Int64N(int64(time.Minute)))
				late++
			}
			now = now.Add(step).Truncate(time.Microsecond)
			key, cost := string(rune('a'+rng.IntN(3))), 0.5*float64(1+rng.IntN(5))
			got, err := r.AllowCostAt(t.Context(), now, key, cost)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := oracle.AllowCost(t.Context(), key, cost)
			if got != want {
				t.Fatalf("%+v at %v, cost %v: %+v, tb/mutex has %+v", limit, now, cost, got, want)
			}
			if got.Allowed {
				granted++
			}
		}
	}
	if granted < calls || granted > 4*calls || late < calls {
		t.Errorf("%d granted, %d late: one kind of call is rare", granted, late)
	}
}

func TestReplayRemovesItsKeysAndNoOthers(t *testing.T) {
	c := dial(t, redistest.Start(t))
	ctx := t.Context()
	for _, prefix := range []string{"a*:", "ab:"} {
		r, err := NewReplay(c, perSecond(1_000_000, 1_000_000), prefix)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3000 {
			if _, err := r.AllowCostAt(ctx, time.UnixMicro(noon), fmt.Sprint(i), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	count := func() int64 {
		reply := do(t, c, "DBSIZE")
		n, err := reply.ToInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(); n != 6000 { // a bucket of a limiter would be full after a microsecond
		t.Errorf("%d keys before Remove, want 6000", n)
	}
	r, err := NewReplay(c, perSecond(1, 1), "a*:")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 3000 {
		t.Errorf("%d keys after Remove, want 3000", n)
	}
}

func TestReplayNamesWhatIsOutOfRange(t *testing.T) {
	c := dial(t, redistest.Start(t))
	var config *tb.ConfigError
	for _, prefix := range []string{"", "{"} {
		if _, err := NewReplay(c, perSecond(1, 1), prefix); !errors.As(err, &config) {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
	if _, err := NewReplay(nil, perSecond(1, 1), "a"); !errors.As(err, &config) {
		t.Errorf("no client: %v", err)
	}
	if _, err := NewReplay(c, perSecond(0, 1), "a"); !errors.As(err, &config) {
		t.Errorf("no capacity: %v", err)
	}
	r, err := NewReplay(c, perSecond(1, 1), "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{{}, time.Date(2255, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if _, err := r.AllowCostAt(t.Context(), at, "k", 1); !errors.As(err, &config) {
			t.Errorf("at %v: %v", at, err)
		}
	}
	_, err = r.AllowCostAt(t.Context(), time.Now(), "k", math.NaN())
	if !errors.Is(err, tb.ErrInvalidCost) {
		t.Errorf("cost NaN: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.AllowCostAt(ctx, time.Now(), "k", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}
