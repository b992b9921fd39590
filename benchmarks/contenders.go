package benchmarks

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v3"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// Own are the implementations of this module, and the floor they are measured against.
var Own = []Contender{
	{"floor", newFloor, nil},
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

// floor is what a decision with this map cannot cost less than: a clock reading, a
// look-up, a load and a comparison, and a compare-and-swap if it is granted. It is no
// limiter: it spaces grants out, keeps no burst, and does not say how long to wait. A new
// key costs it a copy, an insertion, and a removal if the table is full.
type floor struct {
	words *xsync.MapOf[string, *atomic.Uint64] // the instant of a key's next grant
	start time.Time
	space uint64 // between two grants, or 0 to grant all

	mu    sync.Mutex
	order []string // of insertion, for as many keys as the table may have
	max   int
	next  int
}

func newFloor(limit tb.Limit, maxKeys int) func(string) bool {
	f := &floor{
		words: xsync.NewMapOf[string, *atomic.Uint64](),
		start: time.Now(),
		max:   maxKeys,
	}
	if limit.Capacity < tb.MaxCapacity {
		f.space = uint64(limit.Per) / uint64(limit.Tokens)
	}
	return f.allow
}

func (f *floor) allow(key string) bool {
	now := uint64(time.Since(f.start))
	word, ok := f.words.Load(key)
	if !ok {
		f.insert(strings.Clone(key), now)
		return true
	}
	for {
		next := word.Load()
		if f.space > 0 && next > now {
			return false
		}
		if word.CompareAndSwap(next, now+f.space) {
			return true
		}
	}
}

func (f *floor) insert(key string, now uint64) {
	word := new(atomic.Uint64)
	word.Store(now + f.space)
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, found := f.words.LoadOrStore(key, word); found {
		return
	}
	if len(f.order) < f.max {
		f.order = append(f.order, key)
		return
	}
	f.words.Delete(f.order[f.next])
	f.order[f.next] = key
	f.next = (f.next + 1) % f.max
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
