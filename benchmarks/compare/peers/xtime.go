package peers

import (
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/seed-181794aa/ratelimit/tb"
)

// newXTime returns one bucket of golang.org/x/time/rate, which has float64 tokens and a lock.
func newXTime(limit tb.Limit) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(perSecond(limit)), limit.Capacity)
}

// xtimeSyncMap is x/time/rate in a sync.Map, the usual way to give it keys. The map has no
// bound, and a refusal does not say how long to wait.
func xtimeSyncMap(limit tb.Limit, _ int) func(string) bool {
	var m sync.Map
	return func(key string) bool {
		l, ok := m.Load(key)
		if !ok {
			l, _ = m.LoadOrStore(key, newXTime(limit))
		}
		return l.(*rate.Limiter).Allow()
	}
}

// xtimeLRU is x/time/rate in golang-lru, which has a bound. Every call takes the lock of the
// table. A key that was evicted comes back full.
func xtimeLRU(limit tb.Limit, maxKeys int) func(string) bool {
	find, _ := xtimeTable(limit, maxKeys)
	return func(key string) bool { return find(key).Allow() }
}

// xtimeTable returns functions that find or make the bucket of a key, and that count the buckets.
func xtimeTable(limit tb.Limit, maxKeys int) (find func(string) *rate.Limiter, size func() int) {
	m := must(lru.New[string, *rate.Limiter](maxKeys))
	find = func(key string) *rate.Limiter {
		l, ok := m.Get(key)
		if !ok {
			l = newXTime(limit)
			if first, found, _ := m.PeekOrAdd(key, l); found {
				l = first
			}
		}
		return l
	}
	return find, m.Len
}
