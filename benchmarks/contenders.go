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

// Own are the floor and the implementations of this module.
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

// floor does the least that a decision with this map needs: a clock reading, a look-up, a
// load, a comparison, and a compare-and-swap for a grant. It is not a limiter: it spaces
// grants out, has no burst, and does not return a wait. For a new key it makes a copy, an
// insertion, and a removal if the table is full.
type floor struct {
	words *xsync.MapOf[string, *atomic.Uint64] // the time of each key's next grant
	start time.Time
	space uint64 // nanoseconds between two grants; 0 grants every call

	mu      sync.Mutex
	keys    []string // a ring in the order of insertion
	maxKeys int
	oldest  int // index in keys of a full ring
}

func newFloor(limit tb.Limit, maxKeys int) func(string) bool {
	f := &floor{
		words:   xsync.NewMapOf[string, *atomic.Uint64](),
		start:   time.Now(),
		maxKeys: maxKeys,
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
	if len(f.keys) < f.maxKeys {
		f.keys = append(f.keys, key)
		return
	}
	f.words.Delete(f.keys[f.oldest])
	f.keys[f.oldest] = key
	f.oldest = (f.oldest + 1) % f.maxKeys
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
