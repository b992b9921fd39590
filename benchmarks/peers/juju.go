package peers

import (
	"sync"

	"github.com/juju/ratelimit"

	"github.com/seed-181794aa/ratelimit/tb"
)

// newJuju returns one bucket of juju/ratelimit. Whole tokens come at the ticks of a clock
// that starts with the bucket. Their rate is within 1% of the limit's.
func newJuju(limit tb.Limit) *ratelimit.Bucket {
	return ratelimit.NewBucketWithRate(perSecond(limit), int64(limit.Capacity))
}

// jujuSyncMap is juju/ratelimit in a sync.Map, because it has no keys. It has a lock per key
// and no bound. A refusal does not say how long to wait.
func jujuSyncMap(limit tb.Limit, _ int) func(string) bool {
	var m sync.Map
	return func(key string) bool {
		b, ok := m.Load(key)
		if !ok {
			b, _ = m.LoadOrStore(key, newJuju(limit))
		}
		return b.(*ratelimit.Bucket).TakeAvailable(1) == 1
	}
}
