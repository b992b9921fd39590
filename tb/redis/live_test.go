package redis

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

var liveDecisions = flag.Int("live", 100_000,
	"decisions by a server's clock that are compared with tb/mutex")

// TestLiveServerDecidesAsMutex makes calls on a server that reads its own clock and expires its
// keys, many of them within a millisecond. Each decision must be the decision of tb/mutex at the
// time that the server has read.
func TestLiveServerDecidesAsMutex(t *testing.T) {
	want := *liveDecisions
	if testing.Short() {
		want = min(want, 20_000)
	}
	c := dial(t, redistest.Start(t))
	const keys = 64
	var decisions, refused, full atomic.Int64
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 16))
			limit := tb.Limit{Capacity: 1 + rng.IntN(100), Tokens: 1 + rng.Int64N(100)}
			// From empty to full in 0.1 to 10 ms.
			limit.Per = time.Duration(limit.Tokens) * time.Duration(1e5+rng.Float64()*1e7) /
				time.Duration(limit.Capacity)
			l := newLimiter(t, c, limit)
			oracle, err := mutex.New[string](limit, tb.WithClock(time.Now)) // without it, New reads a clock
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := oracle.AllowAt(time.Unix(0, 0), "the first reading", 1); err != nil {
				t.Error(err)
				return
			}
			for decisions.Load() < int64(want) && !t.Failed() {
				costs := make([]uint64, 1+rng.IntN(4))
				for j := range costs {
					costs[j] = l.layout.unitsOf(1 + rng.IntN(limit.Capacity))
				}
				s, err := l.exec(t.Context(), strconv.Itoa(i), costs...)
				if err != nil {
					t.Error(err)
					return
				}
				if s.deficit == 0 {
					full.Add(1)
				}
				for _, cost := range costs {
					got := l.layout.take(&s, cost)
					want, _ := oracle.AllowAt(time.UnixMicro(int64(s.now)), "a", int(cost/l.layout.scale))
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
			}
		})
	}
	wg.Wait()
	n := decisions.Load()
	t.Logf("%d decisions, %d refused, %d times a full bucket", n, refused.Load(), full.Load())
	if refused.Load() < n/10 || full.Load() < n/100 {
		t.Error("the buckets are too rarely empty or full")
	}
	info := do(t, c, "INFO", "stats")
	if text, _ := info.ToString(); strings.Contains(text, "expired_keys:0\r") {
		t.Error("no key expired")
	}
}
