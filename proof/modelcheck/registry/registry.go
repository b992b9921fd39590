// Package registry lists the variants of tb/cas that are built to be explored. The variants
// register themselves, and the test that explores them finds them here.
package registry

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Caller has the methods that the calls of a scenario need.
type Caller interface {
	Allow(ctx context.Context, key string) (tb.Decision, error)
	AllowAt(t time.Time, key string, cost float64) (tb.Decision, error)
	Peek(ctx context.Context, key string) (tb.Decision, error)
	Charge(key string, cost float64) (tb.Charge, error)
	TakeAll(t time.Time, charges []tb.Charge, decisions []tb.Decision) (bool, error)
	Reset(key string)
	Stats() tb.Stats
	Level(ctx context.Context, key string) (tb.Level, error)
	Reserve(ctx context.Context, key string, cost float64) (tb.Reservation, error)
	// Cancel is r.Cancel, and Settle is r.Settle. key is the key of r.
	Cancel(key string, r tb.Reservation)
	Settle(key string, r tb.Reservation, actual float64) error
	SetLimit(limit tb.Limit) error
	Hold(ctx context.Context, key string, until time.Time) error
	ChargeIn(tier int, key string, cost float64) (tb.Charge, error)
	SetTier(tier int, limit tb.Limit) error
	// Receipt returns a digest of what the limiter keeps for r. It makes no step.
	Receipt(r tb.Reservation) uint64
	// Has reports whether key has a bucket that is not evicted. It makes no step.
	Has(key string) bool
}

// Limiter is a limiter whose internals can be checked.
type Limiter interface {
	Caller

	// The methods below make no steps.

	// CheckSize returns an error if the table has more keys than MaxKeys. It may be called
	// at any time.
	CheckSize() error
	// CheckTable returns an error if a key is missing from the table or from the order of
	// eviction, or is in the wrong map. It may be called while no call is under way. If
	// undone is true, the order may rank a key later than its stamp.
	CheckTable(undone bool) error
}

// Config is the configuration of a limiter.
type Config struct {
	Limit     tb.Limit
	Tiers     []tb.Limit // if not nil, calls name the tiers of keys
	Options   []tb.Option
	Keys      []string // of one letter
	Collide   bool     // all keys have the same hash
	OneBucket bool     // the limiter is a cas.Bucket and ignores keys
	SetsLimit bool     // calls change the limit
}

// Variants has a function for each variant of the code, which makes a limiter.
var Variants = make(map[string]func(Config) (Limiter, error))
