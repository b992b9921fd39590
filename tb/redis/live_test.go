package redis

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

var liveDecisions = flag.Int("live", 100_000,
	"decisions by a server's clock that are compared with tb/mutex")

// TestLiveServerDecidesAsMutex makes calls on a server that reads its own clock and expires its
// keys, many of them within a millisecond. Each decision must be the decision of tb/mutex at the
// time that the server has read, also of the first call after a key has expired.
func TestLiveServerDecidesAsMutex(t *testing.T) {
	want := *liveDecisions
	if testing.Short() {
		want = min(want, 20_000)
	}
	c := dial(t, redistest.Start(t))
	const keys = 64
	var decisions, refused, full, expired atomic.Int64
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 16))
			limit := tb.Limit{Capacity: 1 + rng.IntN(100), Tokens: 1 + rng.Int64N(100)}
			timeToFill := time.Duration(1e5 + rng.Float64()*1e7) // 0.1 to 10 ms
			limit.Per = time.Duration(limit.Tokens) * timeToFill / time.Duration(limit.Capacity)
			l := newLimiter(t, c, limit)
			m := l.layout.Load()
			oracle, err := mutex.New[string](limit, tb.WithClock(time.Now)) // without it, New reads a clock
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := oracle.AllowAt(time.Unix(0, 0), "the first reading", 1); err != nil {
				t.Error(err)
				return
			}
			for round := 1; decisions.Load() < int64(want) && !t.Failed(); round++ {
				costs := make([]uint64, 1+rng.IntN(4))
				for j := range costs {
					costs[j] = l.layout.Load().unitsOf(1 + rng.IntN(limit.Capacity))
				}
				s, err := l.execUnits(t.Context(), strconv.Itoa(i), costs...)
				if err != nil {
					t.Error(err)
					return
				}
				if s.deficit == 0 {
					full.Add(1)
				}
				for _, cost := range costs {
					got := m.take(&s, cost)
					want, _ := oracle.AllowAt(time.UnixMicro(int64(s.now)), "a", int(cost/m.scale))
					if got != want {
						t.Errorf("limit %+v at %d µs, cost %d: %+v, tb/mutex has %+v",
							limit, s.now, cost, got, want)
						return
					}
					decisions.Add(1)
					if !got.Allowed {
						refused.Add(1)
					}
				}
				if round%16 == 0 {
					expiry := time.UnixMicro(int64(s.now)).Add(timeToFill + 2*time.Millisecond)
					if err := awaitExpiry(t.Context(), c, "tb:{"+strconv.Itoa(i)+"}", expiry); err != nil {
						t.Error(err)
						return
					}
					expired.Add(1)
				}
			}
		})
	}
	wg.Wait()
	n := decisions.Load()
	t.Logf("%d decisions, %d refused, %d times a full bucket, %d times its key expired first",
		n, refused.Load(), full.Load(), expired.Load())
	if refused.Load() < n/10 || full.Load() < n/100 || expired.Load() < n/1000 {
		t.Error("the buckets are too rarely empty or full, or their keys expire too rarely")
	}
}

// awaitExpiry returns when key does not exist anymore. It is an error if it exists at expiry, by
// the clock of the server.
func awaitExpiry(ctx context.Context, c rueidis.Client, key string, expiry time.Time) error {
	for {
		now, err := c.Do(ctx, c.B().Time().Build()).AsIntSlice() // seconds, and microseconds
		if err != nil {
			return err
		}
		n, err := c.Do(ctx, c.B().Exists().Key(key).Build()).AsInt64()
		if err != nil || n == 0 {
			return err
		}
		if time.Unix(now[0], now[1]*1000).After(expiry) {
			return fmt.Errorf("%s has not expired at %v", key, expiry)
		}
	}
}
