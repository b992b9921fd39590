package tbtest_test

import (
	"context"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/tbtest"
)

// limiter is a limiter in whole numbers, without a bound of its keys. A token is limit.Per units,
// and each nanosecond supplies limit.Tokens of them.
type limiter struct {
	limit   tb.Limit
	now     func() time.Time
	mu      sync.Mutex
	buckets map[string]bucket
}

type bucket struct {
	units *big.Int
	at    time.Time
}

func product[A, B ~int | ~int64](a A, b B) *big.Int {
	return new(big.Int).Mul(big.NewInt(int64(a)), big.NewInt(int64(b)))
}

func (l *limiter) Allow(ctx context.Context, key string) (tb.Decision, error) {
	return l.AllowN(ctx, key, 1)
}

func (l *limiter) AllowN(_ context.Context, key string, n int) (d tb.Decision, err error) {
	if n < 1 {
		return d, tb.ErrInvalidCost
	}
	now, full := l.now(), product(l.limit.Capacity, l.limit.Per)
	l.mu.Lock()
	defer l.mu.Unlock()
	b, found := l.buckets[key]
	if !found {
		b = bucket{full, now}
	}
	units, late := b.units, b.at.Sub(now)
	if late < 0 {
		units, late = new(big.Int).Add(units, product(-late, l.limit.Tokens)), 0
	}
	if units.Cmp(full) > 0 {
		units = full
	}
	left := new(big.Int).Sub(units, product(n, l.limit.Per))
	if d.Allowed = left.Sign() >= 0; d.Allowed {
		units = left
		l.buckets[key] = bucket{units, now.Add(late)}
	} else {
		wait := left.Div(left, big.NewInt(l.limit.Tokens)) // rounds down, and is negative
		wait.Sub(big.NewInt(int64(late)), wait)
		if d.RetryAfter = tb.Never; n <= l.limit.Capacity && wait.IsInt64() {
			d.RetryAfter = time.Duration(wait.Int64())
		}
	}
	d.Remaining = int(new(big.Int).Div(units, big.NewInt(int64(l.limit.Per))).Int64())
	return d, nil
}

func newLimiter(limit tb.Limit, opts ...tb.Option) (tb.Limiter, error) {
	s, err := tb.Apply(append([]tb.Option{tb.WithClock(time.Now)}, opts...)...)
	if err == nil {
		err = limit.Validate()
	}
	return &limiter{limit: limit, now: s.Now, buckets: make(map[string]bucket)}, err
}

// A test of the limiter calls RunExcept, or Run if it passes everything.
func ExampleRunExcept() {
	_ = func(t *testing.T) {
		tbtest.RunExcept(t, newLimiter, map[string]string{
			"ThirdsAddUp": "a bucket that fills between two nanoseconds loses the rest",
		})
	}
}
