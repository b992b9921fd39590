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

// The tests in the files interleave_*_test.go force interleavings. They stop one caller between
// two of its steps, and make the steps of another caller at that point.

// fixture is a limiter of ten tokens a key, refilled at one a second, and its clock.
type fixture struct {
	*Limiter[string]
	t   *testing.T
	now time.Duration // the clock's reading, since time.Unix(0, 0)
}

func newFixture(t *testing.T, opts ...tb.Option) *fixture {
	f := &fixture{t: t}
	now := func() time.Time { return time.Unix(0, 0).Add(f.now) }
	l, err := New[string](tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second},
		append(opts, tb.WithClock(now))...)
	if err != nil {
		t.Fatal(err)
	}
	f.Limiter = l
	return f
}

// allow takes n tokens of key.
func (f *fixture) allow(key string, n int) tb.Decision {
	f.t.Helper()
	d, err := f.AllowN(context.Background(), key, float64(n))
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

// granted fails the test unless n tokens of key are granted.
func (f *fixture) granted(key string, n int) {
	f.t.Helper()
	if d := f.allow(key, n); !d.Allowed {
		f.t.Fatalf("%s, %d tokens: %+v, want granted", key, n, d)
	}
}

// refused fails the test unless n tokens of key are refused.
func (f *fixture) refused(key string, n int) {
	f.t.Helper()
	if d := f.allow(key, n); d.Allowed {
		f.t.Fatalf("%s, %d tokens: %+v, want refused", key, n, d)
	}
}

// cell returns key's cell. It fails the test if the key is not in the table.
func (f *fixture) cell(key string) *cell {
	f.t.Helper()
	c := f.table.Load(key)
	if c == nil {
		f.t.Fatalf("%q is not in the table", key)
	}
	return c
}

// seal seals key's cell and returns it, as if its mover were stopped after that step.
func (f *fixture) seal(key string) *cell {
	f.t.Helper()
	c := f.cell(key)
	c.word.Store(c.word.Load() | sealBit)
	return c
}

// layout returns the layout of all keys.
func (f *fixture) layout() *layout { return f.limits.one.Load() }

// take calls the fast path.
func (f *fixture) take(c *cell, tokens int) (d tb.Decision, ok bool) {
	d, _, _, ok = c.take(f.layout(), f.clock.read(), f.layout().unitsOf(float64(tokens)))
	return d, ok
}

// reference returns a tb/mutex limiter with f's limit and clock. It must decide as f does.
func (f *fixture) reference() *mutex.TokenBucket {
	return mutex.NewTokenBucket(10, 1,
		tb.WithClock(func() time.Time { return time.Unix(0, 0).Add(f.now) }))
}

// deltaSpan returns a bit more time than a delta can hold.
func (f *fixture) deltaSpan() time.Duration {
	m := f.layout()
	return time.Duration(m.supply.timeOf(wide{lo: 1 << (63 - m.deficitBits)})) + 3*time.Second
}

func TestCollidingCallersAreGrantedTheCapacity(t *testing.T) {
	const callers, capacity = 8, 2000
	l, err := New[string](tb.Limit{Capacity: capacity, Tokens: 1, Per: time.Hour},
		tb.WithClock(func() time.Time { return time.Unix(0, 0) }))
	if err != nil {
		t.Fatal(err)
	}
	var grants, collisions atomic.Int64
	for round := 0; collisions.Load() < 100; round++ {
		key := strconv.Itoa(round)
		_, _ = l.Allow(context.Background(), key)
		c := l.table.Load(key)
		grants.Store(1)
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for range capacity / 4 {
					word := c.word.Load()
					runtime.Gosched()
					if c.word.Load() != word {
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
			t.Fatalf("%d tokens granted, want %d", n, capacity)
		}
	}
}
