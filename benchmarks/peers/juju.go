package peers

import (
	"sync"

	"github.com/juju/ratelimit"

	"github.com/seed-181794aa/ratelimit/tb"
)

// newJuju returns one bucket of juju/ratelimit. It has whole tokens, which come at the
// ticks of a clock that starts with the bucket, at a rate within 1% of what is asked for.
// A nil clock is the clock of the process.
func newJuju(limit tb.Limit, clock ratelimit.Clock) *ratelimit.Bucket {
	capacity := int64(limit.Capacity)
	return ratelimit.NewBucketWithRateAndClock(perSecond(limit), capacity, clock)
}

// jujuSyncMap is juju/ratelimit in a sync.Map, because it has no keys: no bound, and a
// lock per key. Nothing says how long to wait after a refusal.
func jujuSyncMap(limit tb.Limit, _ int) func(string) bool {
	var m sync.Map
	return func(key string) bool {
		b, ok := m.Load(key)
		if !ok {
			b, _ = m.LoadOrStore(key, newJuju(limit, nil))
		}
		return b.(*ratelimit.Bucket).TakeAvailable(1) == 1
	}
}
