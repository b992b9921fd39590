// Package sleep waits for a time or for the end of a context.
package sleep

import (
	"context"
	"math"
	"time"
)

// AtMost returns the time until the deadline of the context, or the longest Duration if it has
// none. It returns the error of the context if that has ended. Its timer may fire late, so a
// deadline that has passed is such an error too.
func AtMost(ctx context.Context) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		return math.MaxInt64, nil
	}
	within := time.Until(deadline)
	if within < 0 {
		return 0, context.DeadlineExceeded
	}
	return within, nil
}

// For returns nil after d, or the error of the context if that ends before. It starts no goroutine.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
