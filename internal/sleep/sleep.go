// Package sleep waits for a time or for the end of a context.
package sleep

import (
	"context"
	"time"
)

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
