package tbtest

import (
	"context"
	"reflect"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// The methods that a limiter may have beyond tb.Limiter.
type (
	hasAllowCost interface {
		AllowCost(ctx context.Context, key string, cost float64) (tb.Decision, error)
	}
	hasAllowAt interface {
		AllowAt(t time.Time, key string, n int) (tb.Decision, error)
	}
	hasCharge interface {
		Charge(key string, cost float64) (tb.Charge, error)
	}
	hasPeek interface {
		Peek(ctx context.Context, key string) (tb.Decision, error)
	}
	hasLevel interface {
		Level(ctx context.Context, key string) (tb.Level, error)
	}
	hasReset interface{ Reset(key string) }
	hasLen   interface{ Len() int }
	hasStats interface{ Stats() tb.Stats }
)

// skipUnless returns the limiter as a T. It skips the test if the limiter is not a T.
func skipUnless[T any](f *fixture) T {
	f.Helper()
	l, ok := f.Limiter.(T)
	if !ok {
		f.Skipf("%T is not a %v", f.Limiter, reflect.TypeFor[T]())
	}
	return l
}
