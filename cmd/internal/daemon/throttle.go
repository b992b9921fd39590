package daemon

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// SuppressedKey is the attribute that counts the lines suppressed since the last one.
const SuppressedKey = "suppressed"

// Throttle bounds how often something is logged, so that a flood of requests does not become
// a flood of lines.
type Throttle struct {
	bucket     *cas.Bucket
	suppressed atomic.Uint64
}

// NewThrottle returns a throttle that admits 100 lines at once and 20 a second.
func NewThrottle() *Throttle {
	bucket, err := cas.NewBucket(tb.Limit{Capacity: 100, Tokens: 20, Per: time.Second})
	if err != nil {
		panic(err) // the limit is valid
	}
	return &Throttle{bucket: bucket}
}

// Admit reports whether to log a line, and how many lines were suppressed since the last one.
func (t *Throttle) Admit() (suppressed uint64, ok bool) {
	if !t.bucket.Allow().Allowed {
		t.suppressed.Add(1)
		return 0, false
	}
	return t.suppressed.Swap(0), true
}

// Throttled returns a log that suppresses records while there are too many.
func Throttled(log *slog.Logger) *slog.Logger {
	return slog.New(throttledHandler{log.Handler(), NewThrottle()})
}

type throttledHandler struct {
	slog.Handler
	throttle *Throttle
}

func (t throttledHandler) Handle(ctx context.Context, r slog.Record) error {
	n, ok := t.throttle.Admit()
	if !ok {
		return nil
	}
	if n > 0 {
		r.AddAttrs(slog.Uint64(SuppressedKey, n))
	}
	return t.Handler.Handle(ctx, r)
}

func (t throttledHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	t.Handler = t.Handler.WithAttrs(attrs)
	return t
}

func (t throttledHandler) WithGroup(name string) slog.Handler {
	t.Handler = t.Handler.WithGroup(name)
	return t
}
