package tbtest_test

import (
	"context"
	"math"
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

const micros = 1_000_000 // in a token

// microsOf returns a cost in millionths of a token, rounded up.
func microsOf(cost float64) int64 {
	n := math.Floor(min(cost, math.MaxInt32) * micros)
	if n/micros < cost {
		n++
	}
	return int64(n)
}

func product(factors ...int64) *big.Int {
	p := big.NewInt(1)
	for _, f := range factors {
		p.Mul(p, big.NewInt(f))
	}
	return p
}

func (l *limiter) Allow(ctx context.Context, key string) (tb.Decision, error) {
	return l.AllowN(ctx, key, 1)
}

func (l *limiter) AllowN(_ context.Context, key string, cost float64) (d tb.Decision, err error) {
	if !(cost > 0) || math.IsInf(cost, 1) {
		return d, tb.ErrInvalidCost
	}
	now, per := l.now(), int64(l.limit.Per)
	full := product(micros, int64(l.limit.Capacity), per)
	l.mu.Lock()
	defer l.mu.Unlock()
	b, found := l.buckets[key]
	if !found {
		b = bucket{full, now}
	}
	units, late := b.units, b.at.Sub(now)
	if late < 0 {
		units, late = new(big.Int).Add(units, product(micros, l.limit.Tokens, int64(-late))), 0
	}
	if units.Cmp(full) > 0 {
		units = full
	}
	left := new(big.Int).Sub(units, product(microsOf(cost), per))
	if d.Allowed = left.Sign() >= 0; d.Allowed {
		units = left
		l.buckets[key] = bucket{units, now.Add(late)}
	} else {
		wait := left.Div(left, product(micros, l.limit.Tokens)) // rounds down, and is negative
		wait.Sub(big.NewInt(int64(late)), wait)
		if d.RetryAfter = tb.Never; cost <= float64(l.limit.Capacity) && wait.IsInt64() {
			d.RetryAfter = time.Duration(wait.Int64())
		}
	}
	d.Remaining = int(new(big.Int).Div(units, product(micros, per)).Int64())
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
