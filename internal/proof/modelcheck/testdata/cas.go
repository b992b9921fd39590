package cas

import (
	"context"
	"errors"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/proof/modelcheck"
	"github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/registry"
	variant "github.com/seed-181794aa/ratelimit/internal/proof/modelcheck/variants/tb"
	"github.com/seed-181794aa/ratelimit/tb"
)

func init() { registry.Variants["VARIANT"] = expose }

// expose makes a limiter and labels its variables.
func expose(c registry.Config) (registry.Limiter, error) {
	if c.OneBucket {
		b, err := NewBucket(c.Limit, c.Options...)
		if err != nil {
			return nil, err
		}
		b.clock.first.Label("first reading")
		b.cell.Label("cell")
		b.limits.label()
		return exposedBucket{b}, nil
	}
	l, err := New[string](c.Limit, c.Options...)
	if err != nil {
		return nil, err
	}
	l.table.Expose(c.Keys, c.Collide)
	l.clock.first.Label("first reading")
	l.evictor.refused.Label("refused")
	l.limits.label()
	return exposed{l}, nil
}

func (s *limits) label() {
	s.one.Label("layout")
	s.one.Load().highest.Label("highest base")
	s.setting.Label("lock of SetLimit")
	s.reservations.Label("reservations")
	s.cancellations.Label("cancellations")
	s.settled.Label("settled")
	s.unpaid.Label("unpaid")
}

type exposed struct{ *Limiter[string] }

func (l exposed) CheckSize() error             { return l.table.CheckSize() }
func (l exposed) CheckTable(undone bool) error { return l.table.CheckTable(undone) }

func (l exposed) Charge(key string, cost float64) (tb.Charge, error) {
	c, err := l.Limiter.Charge(key, cost)
	return &c, err
}

func (l exposed) TakeAll(
	t time.Time, charges []tb.Charge, decisions []tb.Decision,
) (bool, error) {
	return variant.TakeAll(t, variant.All(charges), decisions)
}

// Digest returns a digest of the data that the lock of the table guards.
func (e *evictor) Digest() uint64 {
	return modelcheck.Hash([...]uint64{e.earliest, e.evictedFull, e.evictedInDebt, e.forgiven})
}

func (l exposed) Forgiven() float64 { return l.evictor.stats(0).Forgiven }

func (l exposed) Has(key string) bool {
	c := l.table.Find(key)
	return c != nil && c.word.Load() != evicted
}

func (l exposed) Available(key string, t time.Time) float64 {
	c := l.table.Find(key)
	if c == nil {
		return float64(l.layoutOf(key).tokens)
	}
	return l.limits.available(l.layoutOf(key), c, l.clock.instant(t))
}

// available returns the tokens that callers can take from c at t: 0 if c is evicted.
func (s *limits) available(m *layout, c *cell, t uint64) float64 {
	word := c.word.Load()
	if word == evicted {
		return 0
	}
	base, seen := s.view(m, c.base, word, t)
	return m.level(base, seen, t).Tokens
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

func (b exposedBucket) Available(_ string, t time.Time) float64 {
	c := b.cell.Load()
	if c == nil {
		return float64(b.layout().tokens)
	}
	return b.limits.available(b.layout(), c, b.clock.instant(t))
}

func (b exposedBucket) Charge(string, float64) (tb.Charge, error) {
	return nil, errors.New("a bucket has no charges")
}

func (b exposedBucket) TakeAll(time.Time, []tb.Charge, []tb.Decision) (bool, error) {
	return false, errors.New("a bucket has no charges")
}

func (b exposedBucket) Reset(string)          {}
func (b exposedBucket) Stats() tb.Stats       { return tb.Stats{} }
func (b exposedBucket) Forgiven() float64     { return 0 }
func (b exposedBucket) Has(string) bool       { return b.cell.Load() != nil }
func (b exposedBucket) CheckSize() error      { return nil }
func (b exposedBucket) CheckTable(bool) error { return nil }
