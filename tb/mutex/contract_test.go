package mutex_test

import (
	"errors"
	"math"
	"testing"

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

// limiter has charges as the suite expects them.
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

func TestNaNIsNoKey(t *testing.T) {
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
