package peers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/go-chi/httprate"
	"github.com/juju/ratelimit"
	limiter "github.com/sethvargo/go-limiter"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// subjects are the limiters, in the order of the table.
var subjects = []subject{
	{name: "tb/cas", how: "AllowN", new: driveCAS},
	{name: "tb/mutex", how: "AllowN", new: driveMutex},
	{name: "x/time/rate", module: "golang.org/x/time",
		how: "AllowN(t, n); the wait is that of ReserveN, cancelled", new: driveXTime},
	{name: "x/time/rate in golang-lru", module: "github.com/hashicorp/golang-lru/v2",
		how: "the same, on the bucket in the table", new: driveXTimeLRU},
	{name: "throttled", module: "github.com/throttled/throttled/v2",
		how: "RateLimitCtx on a memstore with SetTimeNow", new: driveThrottled},
	{name: "sethvargo/go-limiter", module: "github.com/sethvargo/go-limiter",
		how: "Take on a memorystore; the wait is until its reset", new: driveSethvargo,
		step: time.Minute, unit: true, byHours: true},
	{name: "ulule/limiter", module: "github.com/ulule/limiter/v3",
		how: "Increment on a memory store; the wait is until its Reset", new: driveUlule,
		step: time.Second},
	{name: "juju/ratelimit", module: "github.com/juju/ratelimit",
		how: "TakeMaxDuration(n, 0) with a clock", new: driveJuju, over: 1},
	{name: "uber-go/ratelimit", module: "go.uber.org/ratelimit",
		how: "Take with a clock, WithSlack(capacity-1)", new: driveUber,
		unit: true},
	{name: "go-chi/httprate", module: "github.com/go-chi/httprate",
		how: "OnLimit, WithIncrement for a cost; the wait is its Retry-After",
		new: driveHTTPRate, step: time.Second},
}

func driveOwn(l tb.Limiter) driver {
	ctx := context.Background()
	return driver{
		take: func(key string, n int) outcome {
			d, err := l.AllowN(ctx, key, n)
			return decide(d.Allowed, err)
		},
		ask: func(key string, n int) time.Duration {
			d, _ := l.AllowN(ctx, key, n)
			return d.RetryAfter
		},
	}
}

func driveCAS(w *world, limit tb.Limit, maxKeys int) driver {
	return driveOwn(must(cas.New[string](limit, tb.WithMaxKeys(maxKeys), tb.WithClock(w.now))))
}

func driveMutex(w *world, limit tb.Limit, maxKeys int) driver {
	return driveOwn(must(mutex.New[string](limit, tb.WithMaxKeys(maxKeys), tb.WithClock(w.now))))
}

func driveXTime(w *world, limit tb.Limit, _ int) driver {
	l := newXTime(limit)
	return driveXTimeIn(w, func(string) *rate.Limiter { return l })
}

func driveXTimeLRU(w *world, limit tb.Limit, maxKeys int) driver {
	return driveXTimeIn(w, xtimeTable(limit, maxKeys))
}

func driveXTimeIn(w *world, find func(string) *rate.Limiter) driver {
	return driver{
		take: func(key string, n int) outcome { return decide(find(key).AllowN(w.now(), n), nil) },
		ask: func(key string, n int) time.Duration {
			r := find(key).ReserveN(w.now(), n)
			wait := r.DelayFrom(w.now())
			r.CancelAt(w.now())
			return wait
		},
	}
}

func driveThrottled(w *world, limit tb.Limit, maxKeys int) driver {
	store := must(memstore.New(maxKeys))
	store.SetTimeNow(w.now)
	l := newThrottled(limit, throttled.WrapStoreWithContext(store))
	ctx := context.Background()
	return driver{
		take: func(key string, n int) outcome {
			limited, _, err := l.RateLimitCtx(ctx, key, n)
			return decide(!limited, err)
		},
		ask: func(key string, n int) time.Duration {
			_, r, _ := l.RateLimitCtx(ctx, key, n)
			if r.RetryAfter == -1 {
				return tb.Never
			}
			return r.RetryAfter
		},
	}
}

// driveSethvargo drives a limiter that reads the clock behind the back of package time,
// and so sees the true time in a bubble. It compares that only with the instant of a
// key's first call. So to move that back is the same as to move the time forward. The
// true time adds the little that the test takes, which matters to nothing that is
// measured in minutes.
func driveSethvargo(w *world, limit tb.Limit, _ int) driver {
	store := newSethvargo(limit)
	ctx := context.Background()
	w.close = func() { _ = store.Close(ctx) }
	w.forward = func(d time.Duration) { moveBack(store, d) }
	asked := 0
	return driver{
		take: func(key string, _ int) outcome {
			_, _, _, ok, err := store.Take(ctx, key)
			return decide(ok, err)
		},
		ask: func(key string, _ int) time.Duration {
			_, _, reset, _, _ := store.Take(ctx, key)
			asked++ // a new key's window starts now
			_, _, next, _, _ := store.Take(ctx, "clock "+strconv.Itoa(asked))
			wait := window(limit) - time.Duration(next-reset)
			return (wait + time.Minute - 1).Truncate(time.Minute)
		},
	}
}

func moveBack(store limiter.Store, d time.Duration) {
	s := reflect.ValueOf(store).Elem()
	lock := (*sync.RWMutex)(unsafe.Pointer(s.FieldByName("dataLock").UnsafeAddr()))
	lock.Lock() // its goroutine sweeps now and then
	defer lock.Unlock()
	for buckets := s.FieldByName("data").MapRange(); buckets.Next(); {
		start := buckets.Value().Elem().FieldByName("startTime")
		*(*uint64)(unsafe.Pointer(start.UnsafeAddr())) -= uint64(d)
	}
}

// driveUlule leaves out the goroutine that sweeps expired counters, which would never end.
func driveUlule(_ *world, limit tb.Limit, _ int) driver {
	l := newUlule(limit, memory.NewStoreWithOptions(ulule.StoreOptions{}))
	ctx := context.Background()
	return driver{
		take: func(key string, n int) outcome {
			c, err := l.Increment(ctx, key, int64(n))
			return decide(!c.Reached, err)
		},
		ask: func(key string, n int) time.Duration {
			c, _ := l.Increment(ctx, key, int64(n))
			return time.Until(time.Unix(c.Reset, 0))
		},
	}
}

type sleeper struct{ *world }

func (s sleeper) Now() time.Time        { return s.now() }
func (s sleeper) Sleep(d time.Duration) { time.Sleep(d) }

func driveJuju(w *world, limit tb.Limit, _ int) driver {
	var clock ratelimit.Clock = sleeper{w}
	b := newJuju(limit, clock)
	return driver{take: func(_ string, n int) outcome {
		_, ok := b.TakeMaxDuration(int64(n), 0)
		return decide(ok, nil)
	}}
}

func driveUber(w *world, limit tb.Limit, _ int) driver {
	l := newUber(limit, uber.WithClock(sleeper{w}))
	return driver{take: func(string, int) outcome {
		begin := time.Now()
		l.Take()
		if d := time.Since(begin); d > 0 {
			return outcome("waits " + d.String())
		}
		return granted
	}}
}

func driveHTTPRate(_ *world, limit tb.Limit, _ int) driver {
	l := newHTTPRate(limit, httprate.ResponseHeaders{Limit: "Limit", RetryAfter: "Retry-After"})
	call := func(w http.ResponseWriter, key string, n int) bool {
		r := new(http.Request)
		return !l.OnLimit(w, r.WithContext(httprate.WithIncrement(context.Background(), n)), key)
	}
	return driver{
		take: func(key string, n int) outcome {
			return decide(call(httptest.NewRecorder(), key, n), nil)
		},
		ask: func(key string, n int) time.Duration {
			w := httptest.NewRecorder()
			call(w, key, n)
			return time.Duration(must(strconv.Atoi(w.Header().Get("Retry-After")))) * time.Second
		},
		overtaken: func(key string, n int, others func()) outcome {
			w := &overtaker{ResponseRecorder: httptest.NewRecorder(), others: others}
			return decide(call(w, key, n), nil)
		},
	}
}

// overtaker makes the other calls when the limiter sets its first header, which is
// between its reading of the clock and its lock. So a goroutine that loses its processor
// there is overtaken, too.
type overtaker struct {
	*httptest.ResponseRecorder
	others func()
}

func (o *overtaker) Header() http.Header {
	if others := o.others; others != nil {
		o.others = nil
		others()
	}
	return o.ResponseRecorder.Header()
}
