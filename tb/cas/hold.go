package cas

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Hold grants nothing of key's bucket before a time, at which the bucket is empty and refills. It
// returns tb.ErrTableFull if the table has no room for a new key. It ignores the context.
func (l *Limiter[K]) Hold(_ context.Context, key K, until time.Time) error {
	if isNaN(key) {
		return tb.ErrInvalidKey
	}
	return hold(l.placeOf(key), until)
}

// Hold is Limiter.Hold for the bucket.
func (b *Bucket) Hold(until time.Time) { _ = hold(b, until) }

// hold holds the bucket of h. If the time has no monotonic reading, as one of a header, it is as
// far from now as the wall clock says.
func hold[H home](h H, until time.Time) error {
	m, now := h.layoutOf(nil), h.times().time()
	t := h.times().instant(now)
	left := min(uint64(max(0, until.Sub(now))), m.end-t)
	if left == 0 {
		return nil
	}
	_, _, err := spend(h, h.load(), t, request{until: t + left})
	return err
}
