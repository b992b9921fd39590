package mutex_test

import (
	"errors"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
	"github.com/seed-181794aa/ratelimit/tb/tbtest"
)

func TestContract(t *testing.T) {
	tbtest.Run(t, func(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
		l, err := mutex.New[string](limit, opts...)
		return limiter{l}, err
	})
}

type (
	name  string
	route struct {
		tenant string
		port   int
		path   string
	}
	lists [3]string
	mixed struct {
		_     int
		route // embedded and unexported
		lists [2]lists
		code  [4]byte
		*int
	}
)

func TestKeysOfOtherTypes(t *testing.T) {
	t.Run("name", func(t *testing.T) {
		runKeys(t, func(text string) name { return name(text) })
	})
	t.Run("route", func(t *testing.T) { runKeys(t, newRoute) })
	t.Run("lists", func(t *testing.T) { runKeys(t, newLists) })
	t.Run("mixed", func(t *testing.T) {
		port := 443
		runKeys(t, func(text string) mixed {
			part := len(text) / 3
			return mixed{
				route: newRoute(text[:part]),
				lists: [2]lists{newLists(text[part : 2*part]), newLists(text[2*part:])},
				code:  [4]byte{1, 2, 3, 4},
				int:   &port,
			}
		})
	})
}

func runKeys[K comparable](t *testing.T, key func(text string) K) {
	tbtest.RunKeys(t, func(limit tb.Limit, opts ...tb.Option) (tbtest.Keyed[K], error) {
		return mutex.New[K](limit, opts...)
	}, key)
}

func newRoute(text string) route {
	return route{text[:len(text)/2], 80, text[len(text)/2:]}
}

func newLists(text string) lists {
	part := len(text) / 3
	return lists{text[:part], text[part : 2*part], text[2*part:]}
}

// limiter returns its charges as tb.Charge, as the suite requires.
type limiter struct{ *mutex.TokenBucket }

func (l limiter) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := l.TokenBucket.Charge(key, cost)
	return &c, err
}

func TestNewTokenBucketPanicsOnBadArguments(t *testing.T) {
	bad := func(capacity int, rate float64, opts ...tb.Option) {
		defer func() {
			if err, ok := recover().(*tb.ConfigError); !ok {
				t.Errorf("capacity %d, rate %v: panic with %v, want a *tb.ConfigError", capacity, rate, err)
			}
		}()
		mutex.NewTokenBucket(capacity, rate, opts...)
	}
	bad(0, 1)
	bad(1<<30+1, 1)
	bad(1, 0)
	bad(1, -1)
	bad(1, math.NaN())
	bad(1, math.Inf(1))
	bad(1, 1e9+1)
	bad(1, 1, tb.WithMaxKeys(0))
}

func TestKeyTypesThatHoldAnInterfaceAreRefused(t *testing.T) {
	limit := tb.Limit{Capacity: 1, Tokens: 1, Per: 1}
	_, plain := mutex.New[any](limit)
	_, inside := mutex.New[struct{ err [1]error }](limit)
	for _, err := range []error{plain, inside} {
		var cfg *tb.ConfigError
		if !errors.As(err, &cfg) || cfg.Field != "K" {
			t.Errorf("got error %v, want a *tb.ConfigError for K", err)
		}
	}
}

func TestInsertDropsSixteenIdleKeys(t *testing.T) {
	now := time.Unix(0, 0)
	l := mutex.NewTokenBucket(10, 1, tb.WithClock(func() time.Time { return now }))
	allow := func(key string, want int) {
		t.Helper()
		if d, err := l.Allow(t.Context(), key); err != nil || !d.Allowed {
			t.Fatalf("%s: %+v, %v", key, d, err)
		}
		if n := l.Len(); n != want {
			t.Fatalf("%d keys, want %d", n, want)
		}
	}
	for i := range 40 {
		allow(strconv.Itoa(i), i+1)
	}
	now = now.Add(61*time.Second - 1)
	allow("too early", 41)
	now = now.Add(1)
	allow("39", 41) // only an insert drops keys
	allow("first", 26)
	allow("second", 11)
	allow("third", 5) // left are too early, 39, first, second and third
}

func TestNaNIsNotAKey(t *testing.T) {
	l, err := mutex.New[float64](tb.Limit{Capacity: 1, Tokens: 1, Per: 1})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := l.Allow(t.Context(), math.NaN()); !errors.Is(err, tb.ErrInvalidKey) || d.Allowed {
		t.Errorf("got %+v, %v, want ErrInvalidKey", d, err)
	}
	if _, err := l.Peek(t.Context(), math.NaN()); !errors.Is(err, tb.ErrInvalidKey) {
		t.Errorf("Peek: got %v, want ErrInvalidKey", err)
	}
	l.Reset(math.NaN())
	if n := l.Len(); n != 0 {
		t.Errorf("%d keys, want 0", n)
	}
}
