package peers

import (
	"sync"

	"go.uber.org/ratelimit"

	"github.com/seed-181794aa/ratelimit/tb"
)

// newUber returns one limiter of uber-go/ratelimit. A burst is a call that is due and as
// many as the slack, which has to build up first.
func newUber(limit tb.Limit, more ...ratelimit.Option) ratelimit.Limiter {
	options := []ratelimit.Option{
		ratelimit.Per(interval(limit)),
		ratelimit.WithSlack(limit.Capacity - 1),
	}
	return ratelimit.New(1, append(options, more...)...)
}

// uberSyncMap is uber-go/ratelimit in a sync.Map, because it has no keys: no bound. It
// never refuses but waits, so it is measured only where there is nothing to wait for. It
// is one compare-and-swap, like the floor, and reads the wall clock.
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
