package peers

import (
	"sync"

	"go.uber.org/ratelimit"

	"github.com/seed-181794aa/ratelimit/tb"
)

// newUber returns one limiter of uber-go/ratelimit. A burst is one call that is due plus the
// slack, which builds up while no call is made.
func newUber(limit tb.Limit) ratelimit.Limiter {
	return ratelimit.New(1, ratelimit.Per(interval(limit)), ratelimit.WithSlack(limit.Capacity-1))
}

// uberSyncMap is uber-go/ratelimit in a sync.Map, because it has no keys. It has no bound. It
// waits instead of refusing, so only grants are measured. Like the floor, it makes one
// compare-and-swap.
func uberSyncMap(limit tb.Limit, _ int) func(string) bool {
	var m sync.Map
	return func(key string) bool {
		l, ok := m.Load(key)
		if !ok {
			l, _ = m.LoadOrStore(key, newUber(limit))
		}
		l.(ratelimit.Limiter).Take()
		return true
	}
}
