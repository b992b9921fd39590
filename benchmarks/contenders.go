package benchmarks

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v3"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// Own are the implementations of this module, and the floor: what a decision cannot
// cost less than, with a clock reading, a look-up in the concurrent map, and, if it is
// granted, a compare-and-swap.
var Own = []Contender{
	{"floor", newFloor, func(w Workload) bool { return w.Load == "new" }},
	{"cas", newCAS, nil},
	{"mutex", newMutex, nil},
}

func newCAS(limit tb.Limit, maxKeys int) func(string) bool {
	l := must(cas.New[string](limit, tb.WithMaxKeys(maxKeys)))
	ctx := context.Background()
	return func(key string) bool { d, err := l.Allow(ctx, key); return err == nil && d.Allowed }
}

func newMutex(limit tb.Limit, maxKeys int) func(string) bool {
	l := must(mutex.New[string](limit, tb.WithMaxKeys(maxKeys)))
	ctx := context.Background()
	return func(key string) bool { d, err := l.Allow(ctx, key); return err == nil && d.Allowed }
}

func newFloor(limit tb.Limit, _ int) func(string) bool {
	m := xsync.NewMapOf[string, *atomic.Uint64]()
	start := time.Now()
	refuse := limit.Capacity == 1
	return func(key string) bool {
		now := uint64(time.Since(start))
		word, ok := m.Load(key)
		if !ok {
			m.Store(strings.Clone(key), new(atomic.Uint64))
			return true
		}
		for old := word.Load(); ; old = word.Load() {
			if refuse {
				return old > now
			}
			if word.CompareAndSwap(old, now|1) {
				return true
			}
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
