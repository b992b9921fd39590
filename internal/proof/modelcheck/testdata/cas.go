package cas

import (
	"context"
	"errors"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/proof/modelcheck"
	"github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/registry"
	edition "github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/variants/tb"
	"github.com/seed-181794aa/ratelimit/tb"
)

func init() { registry.Variants["VARIANT"] = expose }

// expose makes a limiter and names its variables for the scheduler.
func expose(c registry.Config) (registry.Limiter, error) {
	if c.OneBucket {
		b, err := NewBucket(c.Limit, c.Options...)
		if err != nil {
			return nil, err
		}
		b.clock.first.Label("first reading")
		b.cell.Label("cell")
		return exposedBucket{b}, nil
	}
	l, err := New[string](c.Limit, c.Options...)
	if err != nil {
		return nil, err
	}
	l.table.Expose(c.Keys, c.Collide)
	l.clock.first.Label("first reading")
	l.evictor.refused.Label("refused")
	return exposed{l}, nil
}

type exposed struct{ *Limiter[string] }

func (l exposed) Bounded() error           { return l.table.Bounded() }
func (l exposed) Agrees(undone bool) error { return l.table.Agrees(undone) }

func (l exposed) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := l.Limiter.Charge(key, cost)
	return &c, err
}

func (l exposed) TakeAll(
	t time.Time, charges []tb.Charge, decisions []tb.Decision,
) (bool, error) {
	return edition.TakeAll(t, edition.All(charges), decisions)
}

// Digest is that of what the lock of the table guards.
func (e *evictor) Digest() uint64 {
	return modelcheck.Hash([...]uint64{e.earliest, e.evictedFull, e.evictedInDebt, e.forgiven})
}

func (l exposed) Forgiven() float64 { return l.evictor.stats(0).Forgiven }

func (l exposed) Has(key string) bool {
	b := l.table.Find(key)
	return b != nil && b.word.Load() != evicted
}

func (l exposed) Holds(key string, t time.Time) float64 {
	b := l.table.Find(key)
	if b == nil {
		return float64(l.layout.tokens)
	}
	return b.holds(&l.layout, l.clock.instant(t))
}

// holds returns the tokens of c at t: none if it was evicted, because no caller can take any.
func (c *cell) holds(m *layout, t uint64) float64 {
	word := c.word.Load()
	if word == evicted {
		return 0
	}
	return c.level(m, word, t).Tokens
}

// exposedBucket is a limiter whose keys share one bucket.
type exposedBucket struct{ *Bucket }

func (b exposedBucket) Allow(ctx context.Context, _ string) (tb.Decision, error) {
	return b.Bucket.Allow(ctx)
}

func (b exposedBucket) AllowAt(t time.Time, _ string, n int) (tb.Decision, error) {
	return b.Bucket.AllowAt(t, n)
}

func (b exposedBucket) Peek(ctx context.Context, _ string) (tb.Decision, error) {
	return b.Bucket.Peek(ctx)
}

func (b exposedBucket) Holds(_ string, t time.Time) float64 {
	c := b.cell.Load()
	if c == nil {
		return float64(b.layout.tokens)
	}
	return c.holds(&b.layout, b.clock.instant(t))
}

func (b exposedBucket) Charge(string, float64) (tb.Charge, error) {
	return nil, errors.New("a bucket has no charges")
}

func (b exposedBucket) TakeAll(time.Time, []tb.Charge, []tb.Decision) (bool, error) {
	return false, errors.New("a bucket has no charges")
}

func (b exposedBucket) Reset(string)      {}
func (b exposedBucket) Len() int          { return 0 }
func (b exposedBucket) Stats() tb.Stats   { return tb.Stats{} }
func (b exposedBucket) Forgiven() float64 { return 0 }
func (b exposedBucket) Has(string) bool   { return b.cell.Load() != nil }
func (b exposedBucket) Bounded() error    { return nil }
func (b exposedBucket) Agrees(bool) error { return nil }
