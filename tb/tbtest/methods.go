package tbtest

import (
	"context"
	"reflect"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// The methods that a limiter may have beyond tb.Limiter.
type (
	hasAllowAt interface {
		AllowAt(t time.Time, key string, cost float64) (tb.Decision, error)
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
	hasReserve interface {
		Reserve(ctx context.Context, key string, cost float64) (tb.Reservation, error)
	}
	hasWait interface {
		Wait(ctx context.Context, key string, cost float64) error
	}
	hasSetLimit interface {
		SetLimit(limit tb.Limit) error
		Limit() tb.Limit
	}
	hasReset interface{ Reset(key string) }
	hasLen   interface{ Len() int }
	hasStats interface{ Stats() tb.Stats }
)

// waitingCharge has the methods that a charge may have beyond tb.Charge.
type waitingCharge interface {
	tb.Charge
	MayWait(within time.Duration)
	Delay() time.Duration
	Settle(actual float64) error
}

// chargeAs returns a charge as a T. It skips the test if the charges of the limiter are no T.
func chargeAs[T any](f *fixture, key string, cost float64) T {
	f.Helper()
	c := f.charge(key, cost)
	as, ok := c.(T)
	if !ok {
		f.Skipf("%T is not a %v", c, reflect.TypeFor[T]())
	}
	return as
}

// skipUnless returns the limiter as a T. It skips the test if the limiter is not a T.
func skipUnless[T any](f *fixture) T {
	f.Helper()
	l, ok := f.Limiter.(T)
	if !ok {
		f.Skipf("%T is not a %v", f.Limiter, reflect.TypeFor[T]())
	}
	return l
}
