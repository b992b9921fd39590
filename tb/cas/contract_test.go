package cas_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/tbtest"
)

func TestContract(t *testing.T) {
	tbtest.Run(t, func(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
		l, err := cas.New[string](limit, opts...)
		return limiter{l}, err
	})
}

// limiter has charges as the suite expects them.
type limiter struct{ *cas.TokenBucket }

func (l limiter) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := l.TokenBucket.Charge(key, cost)
	return &c, err
}

// TestBucketContract runs the suite on single buckets, one for each key.
func TestBucketContract(t *testing.T) {
	tbtest.Run(t, func(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
		_, err := cas.NewBucket(limit, opts...)
		return &buckets{limit: limit, opts: opts}, err
	})
}

// buckets is a limiter with a cas.Bucket for each key.
type buckets struct {
	limit tb.Limit
	opts  []tb.Option
	byKey sync.Map
}

func (b *buckets) of(key string) *cas.Bucket {
	if l, ok := b.byKey.Load(key); ok {
		return l.(*cas.Bucket)
	}
	l, err := cas.NewBucket(b.limit, b.opts...)
	if err != nil {
		panic(err)
	}
	first, _ := b.byKey.LoadOrStore(key, l)
	return first.(*cas.Bucket)
}

func (b *buckets) Allow(ctx context.Context, key string) (tb.Decision, error) {
	return b.of(key).Allow(ctx)
}

func (b *buckets) AllowN(ctx context.Context, key string, n int) (tb.Decision, error) {
	return b.of(key).AllowN(ctx, n)
}

func (b *buckets) AllowCost(ctx context.Context, key string, cost float64) (tb.Decision, error) {
	return b.of(key).AllowCost(ctx, cost)
}

func (b *buckets) AllowAt(t time.Time, key string, n int) (tb.Decision, error) {
	return b.of(key).AllowAt(t, n)
}

func (b *buckets) Peek(ctx context.Context, key string) (tb.Decision, error) {
	return b.of(key).Peek(ctx)
}

// A bucket that moves to a new base, again and again, decides as the limiter does.
func TestBucketMovesAsTheLimiterDoes(t *testing.T) {
	var now time.Time
	clock := tb.WithClock(func() time.Time { return now })
	limit := tb.Limit{Capacity: 10, Tokens: 1, Per: 100} // a delta lasts half a minute
	b, err := cas.NewBucket(limit, clock)
	if err != nil {
		t.Fatal(err)
	}
	l, err := cas.New[string](limit, clock)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		got, _ := b.AllowN(t.Context(), 1+i%10)
		want, _ := l.AllowN(t.Context(), "a", 1+i%10)
		if got != want {
			t.Fatalf("call %d at %v: %+v, want %+v", i, now, got, want)
		}
		now = now.Add(time.Duration(i%13) * 7 * time.Second)
		if i%3 == 0 {
			now = now.Add(-time.Minute)
		}
	}
}

func TestNewTokenBucketPanicsOnBadArguments(t *testing.T) {
	bad := func(capacity int, rate float64, opts ...tb.Option) {
		defer func() {
			if err, ok := recover().(*tb.ConfigError); !ok {
				t.Errorf("capacity %d, rate %v: panic with %v, want a *tb.ConfigError", capacity, rate, err)
			}
		}()
		cas.NewTokenBucket(capacity, rate, opts...)
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
	l, err := cas.New[float64](tb.Limit{Capacity: 1, Tokens: 1, Per: 1})
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
