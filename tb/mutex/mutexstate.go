package mutex

import (
	"slices"

	"github.com/seed-181794aa/ratelimit/internal/mutexstate"
)

func init() {
	mutexstate.States = states
	mutexstate.Limits = func(l any) any { return slices.Clone(l.(*TokenBucket).tiers) }
	mutexstate.Use = func(l, limits any, key string) (restore func()) {
		return l.(*TokenBucket).use(limits.([]*limit), key)
	}
}

func states(l any) map[string]any {
	all := make(map[string]any)
	for key, b := range l.(*TokenBucket).buckets {
		s, changes := b.state, 0 // of the limit that the bucket has not seen
		for m := s.limit; m.next != nil; m = m.next {
			changes++
		}
		s.limit = nil
		all[key] = []any{s, changes}
	}
	return all
}

func (l *Limiter[K]) use(limits []*limit, key K) (restore func()) {
	if b := l.buckets[key]; b != nil {
		for m := limits[b.limit.tier].next; m != nil; m = m.next {
			if m == b.limit {
				return func() {}
			}
		}
	}
	present := l.tiers
	later := make([]*limit, len(limits))
	for i, m := range limits { // as if none had changed
		later[i], m.next = m.next, nil
	}
	l.tiers = limits
	return func() {
		l.tiers = present
		for i, m := range limits {
			m.next = later[i]
		}
	}
}
