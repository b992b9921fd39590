package cas

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// A call on a zero value finds nothing, or panics with a sentence. It never dereferences nil.
func TestZeroValues(t *testing.T) {
	ctx, now, limit := context.Background(), time.Now(), tb.Limit{Capacity: 1, Tokens: 1, Per: 1}
	states := map[string]tb.State{"a": {At: now}}
	charge := func(l *TokenBucket) *Charge[string] { c, _ := l.Charge("a", 1); return &c }
	bucketCharge := func(b *Bucket) *BucketCharge { c, _ := b.Charge(1); return &c }
	for name, call := range map[string]func(l *TokenBucket, b *Bucket){
		"Allow":             func(l *TokenBucket, _ *Bucket) { _, _ = l.Allow(ctx, "a") },
		"AllowN":            func(l *TokenBucket, _ *Bucket) { _, _ = l.AllowN(ctx, "a", 2) },
		"AllowAt":           func(l *TokenBucket, _ *Bucket) { _, _ = l.AllowAt(now, "a", 2) },
		"Peek":              func(l *TokenBucket, _ *Bucket) { _, _ = l.Peek(ctx, "a") },
		"Level":             func(l *TokenBucket, _ *Bucket) { _, _ = l.Level(ctx, "a") },
		"Reserve":           func(l *TokenBucket, _ *Bucket) { _, _ = l.Reserve(ctx, "a", 1) },
		"Wait":              func(l *TokenBucket, _ *Bucket) { _ = l.Wait(ctx, "a", 1) },
		"Hold":              func(l *TokenBucket, _ *Bucket) { _ = l.Hold(ctx, "a", now) },
		"Reset":             func(l *TokenBucket, _ *Bucket) { l.Reset("a") },
		"SetLimit":          func(l *TokenBucket, _ *Bucket) { _ = l.SetLimit(limit) },
		"SetTier":           func(l *TokenBucket, _ *Bucket) { _ = l.SetTier(0, limit) },
		"Limit":             func(l *TokenBucket, _ *Bucket) { l.Limit() },
		"Tiers":             func(l *TokenBucket, _ *Bucket) { l.Tiers() },
		"Len":               func(l *TokenBucket, _ *Bucket) { l.Len() },
		"Stats":             func(l *TokenBucket, _ *Bucket) { l.Stats() },
		"Snapshot":          func(l *TokenBucket, _ *Bucket) { _ = maps.Collect(l.Snapshot()) },
		"Restore":           func(l *TokenBucket, _ *Bucket) { _ = l.Restore(maps.All(states)) },
		"Charge.Peek":       func(l *TokenBucket, _ *Bucket) { _, _ = charge(l).Peek(now) },
		"Charge.Take":       func(l *TokenBucket, _ *Bucket) { _, _ = charge(l).Take(now) },
		"Charge.Level":      func(l *TokenBucket, _ *Bucket) { _, _ = charge(l).Level(now) },
		"Bucket.Allow":      func(_ *TokenBucket, b *Bucket) { b.Allow() },
		"Bucket.AllowN":     func(_ *TokenBucket, b *Bucket) { _, _ = b.AllowN(2) },
		"Bucket.AllowAt":    func(_ *TokenBucket, b *Bucket) { _, _ = b.AllowAt(now, 2) },
		"Bucket.Peek":       func(_ *TokenBucket, b *Bucket) { b.Peek() },
		"Bucket.Level":      func(_ *TokenBucket, b *Bucket) { b.Level() },
		"Bucket.LevelAt":    func(_ *TokenBucket, b *Bucket) { b.LevelAt(now) },
		"Bucket.Reserve":    func(_ *TokenBucket, b *Bucket) { _, _ = b.Reserve(1) },
		"Bucket.Wait":       func(_ *TokenBucket, b *Bucket) { _ = b.Wait(ctx, 1) },
		"Bucket.AddAt":      func(_ *TokenBucket, b *Bucket) { b.AddAt(now, -1) },
		"Bucket.Hold":       func(_ *TokenBucket, b *Bucket) { b.Hold(now.Add(time.Hour)) },
		"Bucket.SetLimit":   func(_ *TokenBucket, b *Bucket) { _ = b.SetLimit(limit) },
		"Bucket.SetLimitAt": func(_ *TokenBucket, b *Bucket) { _ = b.SetLimitAt(now, limit) },
		"Bucket.Limit":      func(_ *TokenBucket, b *Bucket) { b.Limit() },
		"BucketCharge.Peek": func(_ *TokenBucket, b *Bucket) { _, _ = bucketCharge(b).Peek(now) },
		"BucketCharge.Take": func(_ *TokenBucket, b *Bucket) { _, _ = bucketCharge(b).Take(now) },
		"BucketCharge.Level": func(_ *TokenBucket, b *Bucket) {
			_, _ = bucketCharge(b).Level(now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if err, ok := recover().(error); ok {
					t.Errorf("panic: %v", err)
				}
			}()
			call(new(TokenBucket), new(Bucket))
		})
	}
}

// The zero charges have taken nothing, so there is nothing to give back.
func TestZeroCharges(t *testing.T) {
	for _, c := range []interface {
		Cancel()
		Settle(actual float64) error
		Delay() time.Duration
	}{new(Charge[string]), new(BucketCharge)} {
		c.Cancel()
		if err := c.Settle(1); err != nil || c.Delay() != 0 {
			t.Errorf("%T: Settle = %v, a delay of %v", c, err, c.Delay())
		}
	}
}

func TestReadingsOfTheCaller(t *testing.T) {
	b, err := NewBucket(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	level := func(s int, want float64) {
		t.Helper()
		c, err := b.Charge(1)
		l, _ := c.Level(at(s))
		if got := b.LevelAt(at(s)); err != nil || got != l || got.Tokens != want {
			t.Errorf("after %d s: %+v and %+v, %v, want %v tokens", s, got, l, err, want)
		}
	}
	if _, err := b.AllowAt(start, -1); !errors.Is(err, tb.ErrInvalidCost) {
		t.Errorf("AllowAt of -1 returned %v, want %v", err, tb.ErrInvalidCost)
	}
	if _, err := b.AllowAt(start, 8); err != nil {
		t.Fatal(err)
	}
	level(0, 2)
	level(3, 5)
	if err := b.SetLimitAt(at(2), tb.Limit{Capacity: 20, Tokens: 2, Per: time.Second}); err != nil {
		t.Fatal(err)
	}
	level(2, 4)
	level(3, 6)
	// A change with an older reading counts from the change before.
	if err := b.SetLimitAt(at(1), tb.Limit{Capacity: 20, Tokens: 4, Per: time.Second}); err != nil {
		t.Fatal(err)
	}
	level(3, 8)
}
