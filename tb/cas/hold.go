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
	return hold(l.placeOf(key), &l.clock, until)
}

// Hold is Limiter.Hold for the bucket.
func (b *Bucket) Hold(until time.Time) { _ = hold(b, &b.clock, until) }

func hold[H home](h H, clock *clock, until time.Time) error {
	t, then := clock.until(until, h.layoutOf(nil).end)
	if then <= t {
		return nil
	}
	_, err := spend(h, h.load(), t, request{until: then})
	return err
}
