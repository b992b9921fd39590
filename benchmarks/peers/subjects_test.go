package peers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/httprate"
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

// outcome is what a limiter does with one call: granted, refused, "fails: …" or "waits 1s".
type outcome string

const (
	granted outcome = "granted"
	refused outcome = "refused"
)

// hasTokens reports whether the caller has its tokens, at once or after a wait.
func (o outcome) hasTokens() bool { return o == granted || strings.HasPrefix(string(o), "waits ") }

func outcomeOf(ok bool, err error) outcome {
	switch {
	case err != nil:
		return outcome("fails: " + err.Error())
	case ok:
		return granted
	}
	return refused
}

// driver makes the calls of the checks on one limiter.
type driver struct {
	// take asks for n tokens of the key's bucket, all or none.
	take func(key string, n int) outcome
	// waitAfterRefusal makes a call that is refused and returns the wait until a retry.
	waitAfterRefusal func(key string, n int) time.Duration
	// takeOvertaken is take with a call of others between the reading of the clock and the
	// decision.
	takeOvertaken func(key string, n int, others func()) outcome
}

// subject is a limiter under test.
type subject struct {
	name string // in docs/peers.md
	new  func(b *bubble, limit tb.Limit, maxKeys int) driver
	// overBound is the excess in tokens that checkLateBound allows, because the limiter
	// exceeds the bound by it without late calls, too.
	overBound float64
	unitCost  bool // each call takes one token
}

func (s subject) maxCost() int {
	if s.unitCost {
		return 1
	}
	return 10
}

// subjects are the rows of the table in docs/peers.md.
var subjects = []subject{
	{name: "tb/cas", new: driveCAS},
	{name: "tb/mutex", new: driveMutex},
	{name: "x/time/rate", new: driveXTime},
	{name: "x/time/rate in golang-lru", new: driveXTimeLRU},
	{name: "throttled", new: driveThrottled},
	{name: "sethvargo/go-limiter", new: driveSethvargo, unitCost: true},
	{name: "ulule/limiter", new: driveUlule},
	{name: "juju/ratelimit", new: driveJuju, overBound: 1},
	{name: "uber-go/ratelimit", new: driveUber, unitCost: true},
	{name: "go-chi/httprate", new: driveHTTPRate},
}

func driveOwn(l tb.Limiter) driver {
	ctx := context.Background()
	return driver{
		take: func(key string, n int) outcome {
			d, err := l.AllowN(ctx, key, n)
			return outcomeOf(d.Allowed, err)
		},
		waitAfterRefusal: func(key string, n int) time.Duration {
			d, _ := l.AllowN(ctx, key, n)
			return d.RetryAfter
		},
	}
}

func driveCAS(b *bubble, limit tb.Limit, maxKeys int) driver {
	return driveOwn(must(cas.New[string](limit, tb.WithMaxKeys(maxKeys), tb.WithClock(b.now))))
}

func driveMutex(b *bubble, limit tb.Limit, maxKeys int) driver {
	return driveOwn(must(mutex.New[string](limit, tb.WithMaxKeys(maxKeys), tb.WithClock(b.now))))
}

func driveXTime(b *bubble, limit tb.Limit, _ int) driver {
	l := newXTime(limit)
	return driveXTimeIn(b, func(string) *rate.Limiter { return l })
}

func driveXTimeLRU(b *bubble, limit tb.Limit, maxKeys int) driver {
	return driveXTimeIn(b, xtimeTable(limit, maxKeys))
}

func driveXTimeIn(b *bubble, find func(string) *rate.Limiter) driver {
	return driver{
		take: func(key string, n int) outcome { return outcomeOf(find(key).AllowN(b.now(), n), nil) },
		waitAfterRefusal: func(key string, n int) time.Duration {
			r := find(key).ReserveN(b.now(), n)
			wait := r.DelayFrom(b.now())
			r.CancelAt(b.now())
			return wait
		},
	}
}

func driveThrottled(b *bubble, limit tb.Limit, maxKeys int) driver {
	store := must(memstore.New(maxKeys))
	store.SetTimeNow(b.now)
	l := newThrottled(limit, throttled.WrapStoreWithContext(store))
	ctx := context.Background()
	return driver{
		take: func(key string, n int) outcome {
			limited, _, err := l.RateLimitCtx(ctx, key, n)
			return outcomeOf(!limited, err)
		},
		waitAfterRefusal: func(key string, n int) time.Duration {
			_, r, _ := l.RateLimitCtx(ctx, key, n)
			if r.RetryAfter == -1 {
				return tb.Never
			}
			return r.RetryAfter
		},
	}
}

// driveSethvargo drives a limiter that reads the clock of the operating system. Each check
// of it therefore takes no time.
func driveSethvargo(b *bubble, limit tb.Limit, _ int) driver {
	store := newSethvargo(limit)
	ctx := context.Background()
	b.Cleanup(func() { _ = store.Close(ctx) })
	return driver{take: func(key string, _ int) outcome {
		_, _, _, ok, err := store.Take(ctx, key)
		return outcomeOf(ok, err)
	}}
}

// driveUlule omits the goroutine that sweeps expired counters, because it would never end.
func driveUlule(_ *bubble, limit tb.Limit, _ int) driver {
	l := newUlule(limit, memory.NewStoreWithOptions(ulule.StoreOptions{}))
	ctx := context.Background()
	return driver{
		take: func(key string, n int) outcome {
			c, err := l.Increment(ctx, key, int64(n))
			return outcomeOf(!c.Reached, err)
		},
		waitAfterRefusal: func(key string, n int) time.Duration {
			c, _ := l.Increment(ctx, key, int64(n))
			return time.Until(time.Unix(c.Reset, 0))
		},
	}
}

// bubbleClock is the clock type of juju/ratelimit and uber-go/ratelimit.
type bubbleClock struct{ *bubble }

func (c bubbleClock) Now() time.Time        { return c.now() }
func (c bubbleClock) Sleep(d time.Duration) { time.Sleep(d) }

func driveJuju(b *bubble, limit tb.Limit, _ int) driver {
	l := newJuju(limit, bubbleClock{b})
	return driver{take: func(_ string, n int) outcome {
		_, ok := l.TakeMaxDuration(int64(n), 0)
		return outcomeOf(ok, nil)
	}}
}

func driveUber(b *bubble, limit tb.Limit, _ int) driver {
	l := newUber(limit, uber.WithClock(bubbleClock{b}))
	return driver{take: func(string, int) outcome {
		begin := time.Now()
		l.Take()
		if d := time.Since(begin); d > 0 {
			return outcome("waits " + d.String())
		}
		return granted
	}}
}

func driveHTTPRate(_ *bubble, limit tb.Limit, _ int) driver {
	l := newHTTPRate(limit, httprate.ResponseHeaders{Limit: "Limit", RetryAfter: "Retry-After"})
	call := func(w http.ResponseWriter, key string, n int) bool {
		r := new(http.Request)
		return !l.OnLimit(w, r.WithContext(httprate.WithIncrement(context.Background(), n)), key)
	}
	return driver{
		take: func(key string, n int) outcome {
			return outcomeOf(call(httptest.NewRecorder(), key, n), nil)
		},
		waitAfterRefusal: func(key string, n int) time.Duration {
			w := httptest.NewRecorder()
			call(w, key, n)
			return time.Duration(must(strconv.Atoi(w.Header().Get("Retry-After")))) * time.Second
		},
		takeOvertaken: func(key string, n int, others func()) outcome {
			w := &overtaker{ResponseRecorder: httptest.NewRecorder(), others: others}
			return outcomeOf(call(w, key, n), nil)
		},
	}
}

// overtaker makes the other calls when the limiter sets its first header. The limiter does
// that after it reads the clock and before it takes its lock. A goroutine that loses its
// processor there is overtaken in the same way.
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
