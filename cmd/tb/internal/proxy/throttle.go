package proxy

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// suppressedKey is the attribute that counts the lines suppressed since the last one.
const suppressedKey = "suppressed"

// throttle bounds how often something is logged, so that a flood of requests does not become
// a flood of lines.
type throttle struct {
	bucket     *cas.Bucket
	suppressed atomic.Uint64
}

func newThrottle() *throttle {
	bucket, err := cas.NewBucket(tb.Limit{Capacity: 100, Tokens: 20, Per: time.Second})
	if err != nil {
		panic(err) // the limit is valid
	}
	return &throttle{bucket: bucket}
}

// admit reports whether to log a line, and how many lines were suppressed since the last one.
func (t *throttle) admit() (suppressed uint64, ok bool) {
	d, _ := t.bucket.Allow(context.Background()) // one token is always a valid cost
	if !d.Allowed {
		t.suppressed.Add(1)
		return 0, false
	}
	return t.suppressed.Swap(0), true
}

// throttledHandler suppresses records while there are too many. The next record has their number.
type throttledHandler struct {
	slog.Handler
	throttle *throttle
}

// Handle implements slog.Handler.
func (t throttledHandler) Handle(ctx context.Context, r slog.Record) error {
	n, ok := t.throttle.admit()
	if !ok {
		return nil
	}
	if n > 0 {
		r.AddAttrs(slog.Uint64(suppressedKey, n))
	}
	return t.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (t throttledHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	t.Handler = t.Handler.WithAttrs(attrs)
	return t
}

// WithGroup implements slog.Handler.
func (t throttledHandler) WithGroup(name string) slog.Handler {
	t.Handler = t.Handler.WithGroup(name)
	return t
}
