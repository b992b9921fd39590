package tbtest

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/seed-181794aa/ratelimit/tb"
)

// New is a constructor of limiters.
type New[L any] = func(tb.Limit, ...tb.Option) (L, error)

// Name is a type of keys that RunGeneric needs.
type Name string

// Composite is a type of keys that RunGeneric needs. It has strings wherever a key can have them.
type Composite struct {
	_     int
	route // embedded and unexported
	lists [2][2]string
	array [1]route
	code  [4]byte
	*int
}

type route struct {
	host string
	port int
	path string
}

func newRoute(text string) route { return route{text[:len(text)/2], port, text[len(text)/2:]} }

var port = 80

func newComposite(text string) Composite {
	part := len(text) / 8
	return Composite{
		route: newRoute(text[:2*part]),
		lists: [2][2]string{
			{text[2*part : 3*part], text[3*part : 4*part]}, {text[4*part : 5*part], text[5*part : 6*part]},
		},
		array: [1]route{newRoute(text[6*part:])},
		code:  [4]byte{1, 2, 3, 4},
		int:   &port,
	}
}

// RunGeneric checks an implementation that is generic in the type of its keys. It gets the
// constructor for four types. It checks keys as RunKeys does. A NaN must be tb.ErrInvalidKey, also
// for Peek, and must not get into the table. Keys of an interface type must be a *tb.ConfigError.
func RunGeneric[N Keyed[Name], C Keyed[Composite], F Keyed[float64], A Keyed[any]](
	t *testing.T, names New[N], composites New[C], floats New[F], anything New[A],
) {
	t.Run("Name", func(t *testing.T) {
		RunKeys(t, names, func(text string) Name { return Name(text) })
	})
	t.Run("Composite", func(t *testing.T) { RunKeys(t, composites, newComposite) })
	t.Run("NaN", func(t *testing.T) {
		l, err := floats(perSecond(1, 1))
		if err != nil {
			t.Fatal(err)
		}
		checkNaN(t, l)
	})
	t.Run("Interface", func(t *testing.T) {
		var cfg *tb.ConfigError
		if _, err := anything(perSecond(1, 1)); !errors.As(err, &cfg) || cfg.Field != "K" {
			t.Errorf("got error %v, want a *tb.ConfigError for K", err)
		}
	})
}

func checkNaN(t *testing.T, l Keyed[float64]) {
	d, err := l.AllowN(t.Context(), math.NaN(), 1)
	if !errors.Is(err, tb.ErrInvalidKey) || d.Allowed {
		t.Errorf("AllowN: %+v, %v, want ErrInvalidKey", d, err)
	}
	if l, ok := l.(interface {
		Peek(ctx context.Context, key float64) (tb.Decision, error)
	}); ok {
		if _, err := l.Peek(t.Context(), math.NaN()); !errors.Is(err, tb.ErrInvalidKey) {
			t.Errorf("Peek: %v, want ErrInvalidKey", err)
		}
	}
	if l, ok := l.(interface{ Reset(key float64) }); ok {
		l.Reset(math.NaN())
	}
	if l, ok := l.(hasLen); ok && l.Len() != 0 {
		t.Errorf("%d keys, want 0", l.Len())
	}
}

// RunConstructor checks a constructor with the arguments of cas.NewTokenBucket: it panics with a
// *tb.ConfigError if one is out of range. A limiter needs no Close. It starts no goroutine, and
// nothing refers to it after the application has dropped it.
func RunConstructor[T any, L interface {
	*T
	tb.Limiter
}](t *testing.T, newLimiter func(capacity int, refillPerSec float64, opts ...tb.Option) L) {
	t.Run("BadArguments", func(t *testing.T) {
		for _, tt := range []struct {
			capacity int
			rate     float64
			opts     []tb.Option
		}{
			{0, 1, nil}, {1<<30 + 1, 1, nil}, {1, 0, nil}, {1, -1, nil}, {1, math.NaN(), nil},
			{1, math.Inf(1), nil}, {1, 1e9 + 1, nil}, {1, 1, []tb.Option{tb.WithMaxKeys(0)}},
		} {
			func() {
				defer func() {
					if err, ok := recover().(*tb.ConfigError); !ok {
						t.Errorf("%+v: panic with %v, want a *tb.ConfigError", tt, err)
					}
				}()
				newLimiter(tt.capacity, tt.rate, tt.opts...)
			}()
		}
	})
	t.Run("DroppedLimiterIsCollected", func(t *testing.T) {
		for range 10 {
			var dropped weak.Pointer[T]
			synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left behind
				l := newLimiter(1, 1e-9, tb.WithMaxKeys(50))
				for i := range 200 { // half of the calls are refused, and half of the keys evicted
					if _, err := l.Allow(t.Context(), strconv.Itoa(i/2)); err != nil {
						t.Fatal(err)
					}
				}
				dropped = weak.Make((*T)(l))
			})
			if runtime.GC(); dropped.Value() != nil {
				t.Fatal("the limiter was not collected")
			}
		}
	})
}
