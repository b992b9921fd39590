// Package registry is where variants of tb/cas that were built to be explored meet the
// test that explores them.
package registry

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Limiter is a limiter that can be looked into.
type Limiter interface {
	Allow(ctx context.Context, key string) (tb.Decision, error)
	AllowAt(t time.Time, key string, n int) (tb.Decision, error)
	Peek(ctx context.Context, key string) (tb.Decision, error)
	Charge(key string, cost float64) (tb.Charge, error)
	TakeAll(t time.Time, charges []tb.Charge, decisions []tb.Decision) (bool, error)
	Reset(key string)
	Len() int
	Stats() tb.Stats

	// What follows makes no steps.

	// Bounded returns an error if there are more keys than MaxKeys. That holds at any
	// instant.
	Bounded() error
	// Agrees returns an error if the keys in the table are not those in the order of
	// eviction, or are not where they belong. That holds while nobody makes a call. If
	// charges were undone, a key may have a later place in the order than is its due.
	Agrees(undone bool) error
	// Has says whether key has a bucket that was not evicted.
	Has(key string) bool
	// Holds returns how many tokens there are for key at t.
	Holds(key string, t time.Time) float64
	// Forgiven is that of Stats.
	Forgiven() float64
}

// Config is what a limiter is made with. With OneBucket it is a single bucket, and keys
// are not looked at.
type Config struct {
	Limit     tb.Limit
	Options   []tb.Option
	Keys      []string // of one letter
	Collide   bool     // they all have the same hash
	OneBucket bool
}

// Variants has the function that makes a limiter, for every variant of the code.
var Variants = make(map[string]func(Config) (Limiter, error))
