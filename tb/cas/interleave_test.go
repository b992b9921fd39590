package cas

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// The tests in the files interleave_*_test.go stop one goroutine between two of its steps by
// making the steps of the other at that point, so that each interleaving happens on every run.

// fake is a limiter with ten tokens a key, one a second, and a clock that is set.
type fake struct {
	*Limiter[string]
	t   *testing.T
	now time.Duration
}

func newFake(t *testing.T, opts ...tb.Option) *fake {
	f := &fake{t: t}
	now := func() time.Time { return time.Unix(0, 0).Add(f.now) }
	l, err := New[string](tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second},
		append(opts, tb.WithClock(now))...)
	if err != nil {
		t.Fatal(err)
	}
	f.Limiter = l
	return f
}

func (f *fake) allow(key string, n int) tb.Decision {
	f.t.Helper()
	d, err := f.AllowN(context.Background(), key, n)
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

func (f *fake) granted(key string, n int) {
	f.t.Helper()
	if d := f.allow(key, n); !d.Allowed {
		f.t.Fatalf("%s, %d tokens: %+v, want granted", key, n, d)
	}
}

func (f *fake) refused(key string, n int) {
	f.t.Helper()
	if d := f.allow(key, n); d.Allowed {
		f.t.Fatalf("%s, %d tokens: %+v, want refused", key, n, d)
	}
}

func (f *fake) cell(key string) *cell {
	f.t.Helper()
	b := f.table.Load(key)
	if b == nil {
		f.t.Fatalf("%q is not in the table", key)
	}
	return b
}

// twin is the limiter that f must not be told apart from.
func (f *fake) twin() *mutex.TokenBucket {
	return mutex.NewTokenBucket(10, 1,
		tb.WithClock(func() time.Time { return time.Unix(0, 0).Add(f.now) }))
}

// span is the time that a delta lasts, plus a bit.
func (f *fake) span() time.Duration {
	t, _ := f.layout.supply.timeOf(0, 1<<(63-f.layout.deficitBits))
	return time.Duration(t) + 3*time.Second
}

func TestCollidingCallersGrantExactly(t *testing.T) {
	const callers, capacity = 8, 2000
	l, err := New[string](tb.Limit{Capacity: capacity, Tokens: 1, Per: time.Hour},
		tb.WithClock(func() time.Time { return time.Unix(0, 0) }))
	if err != nil {
		t.Fatal(err)
	}
	var grants, collisions atomic.Int64
	for round := 0; collisions.Load() < 100; round++ { // until it has been put to the test
		key := strconv.Itoa(round)
		_, _ = l.Allow(context.Background(), key)
		b := l.table.Load(key)
		grants.Store(1)
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for range capacity / 4 {
					word := b.word.Load()
					runtime.Gosched()
					if b.word.Load() != word {
						collisions.Add(1)
					}
					if d, _ := l.Allow(context.Background(), key); d.Allowed {
						grants.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := grants.Load(); n != capacity {
			t.Fatalf("%d of %d granted", n, capacity)
		}
	}
}
