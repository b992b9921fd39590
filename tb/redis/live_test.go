package redis

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
)

var live = flag.Int("live", 40_000, "commands by a server's clock")

// A server that reads its own clock and expires its keys does what it does in simulated time. Many
// buckets are full after less than the milliseconds between two commands.
func TestLiveServerIsAsSimulated(t *testing.T) {
	s := &simulator{client: dial(t, redistest.Start(t)), script: buckets, isLive: true}
	rng := rand.New(rand.NewPCG(16, 17))
	all := newLedgers(rng, 500, func() tb.Limit {
		limit := tb.Limit{Capacity: 1 + rng.IntN(80), Per: time.Duration(1e5 + rng.Float64()*2e7)}
		limit.Tokens = int64(limit.Capacity)
		return limit
	})
	for range *live / len(all) {
		if err := s.compareLedgers(all, rng); err != nil {
			t.Fatal(err)
		}
	}
	expired := 0
	for _, b := range all {
		expired += b.expired
	}
	if t.Logf("%d keys expired in %d commands", expired, *live); expired < *live/100 {
		t.Error("too few keys expired")
	}
}
