package proxy

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// suppressed is the attribute that says how many lines were not logged.
const suppressed = "suppressed"

// throttle bounds how often something is logged. A flood of requests that are refused must
// not become one of lines.
type throttle struct {
	bucket  *cas.Bucket
	dropped atomic.Uint64
}

func newThrottle() *throttle {
	bucket, err := cas.NewBucket(tb.Limit{Capacity: 100, Tokens: 20, Per: time.Second})
	if err != nil {
		panic(err) // the limit is valid
	}
	return &throttle{bucket: bucket}
}

// admit says whether to log, and how often the answer was no since it was last yes.
func (t *throttle) admit() (dropped uint64, ok bool) {
	d, _ := t.bucket.Allow(context.Background()) // one token is always a valid cost
	if !d.Allowed {
		t.dropped.Add(1)
		return 0, false
	}
	return t.dropped.Swap(0), true
}

// throttled is a handler that drops records while there are too many, and says how many in
// the next.
type throttled struct {
	slog.Handler
	throttle *throttle
}

// Handle implements slog.Handler.
func (t throttled) Handle(ctx context.Context, r slog.Record) error {
	n, ok := t.throttle.admit()
	if !ok {
		return nil
	}
	if n > 0 {
		r.AddAttrs(slog.Uint64(suppressed, n))
	}
	return t.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (t throttled) WithAttrs(attrs []slog.Attr) slog.Handler {
	t.Handler = t.Handler.WithAttrs(attrs)
	return t
}

// WithGroup implements slog.Handler.
func (t throttled) WithGroup(name string) slog.Handler {
	t.Handler = t.Handler.WithGroup(name)
	return t
}
