// Package ratelimit is a token-bucket rate limiter for one key or for millions of them.
//
// A bucket holds up to Limit.Capacity tokens and is refilled continuously at Limit.Tokens
// every Limit.Per. A call takes tokens from a bucket, or takes nothing and reports how long
// to wait, exact to the nanosecond.
//
//	limiter := ratelimit.NewTokenBucket(20, 10) // a burst of 20, refilled at 10 a second
//
//	decision, err := limiter.Allow(ctx, client)
//
// # Which type
//
// Most applications want a [Limiter], which has a bucket for each key: a client's address, an
// API key, a tenant. It holds at most a given number of keys. [TokenBucket] is the Limiter of
// string keys. A [Bucket] is one bucket without a key, to embed in a connection or a route.
//
// # Which method
//
// Most callers want Allow. The methods differ in what they take:
//
//   - Allow takes one token.
//   - AllowN takes n tokens, or none.
//   - AllowCost takes a decimal number of tokens, or none.
//   - AllowAt is AllowN for a caller that has already read the clock.
//   - Charge, with [TakeAll], takes from several buckets, or from none: a limit for each client
//     and one for all of them.
//
// These methods take nothing: Peek returns what Allow would return, and Level returns how full
// a bucket is. No method blocks until there are tokens. A caller that wants to wait sleeps for
// Decision.RetryAfter and calls again.
//
// The types and functions of this package are those of packages tb, which states the contract,
// and tb/cas, which implements it without locks. Package httplimit applies policies to HTTP
// requests.
package ratelimit

import (
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Limiter and the other types are those of packages tb and tb/cas.
type (
	Limiter[K comparable] = cas.Limiter[K]  // a token bucket for each key of type K
	TokenBucket           = cas.TokenBucket // a Limiter with string keys
	Bucket                = cas.Bucket      // one token bucket without a key
	Limit                 = tb.Limit        // burst and rate
	Decision              = tb.Decision     // the answer to one call
	Level                 = tb.Level        // how full a bucket is
	Charge                = tb.Charge       // one part of a TakeAll
	Stats                 = tb.Stats        // the table of a Limiter
	Option                = tb.Option       // of New, NewTokenBucket and NewBucket
	Overflow              = tb.Overflow     // see WithOverflow
	ConfigError           = tb.ConfigError  // a Limit or an Option that is out of range
)

// Never is the RetryAfter of a call that no wait can help.
const Never = tb.Never

// ForgiveLeast, the default, evicts the bucket that is nearest to full when a table is full.
// RefuseNew refuses new keys until a bucket is full.
const (
	ForgiveLeast = tb.ForgiveLeast
	RefuseNew    = tb.RefuseNew
)

// ErrInvalidCost is returned for a cost that is zero, negative, NaN or infinite. ErrInvalidKey
// is returned for a key that does not equal itself, such as a NaN.
var (
	ErrInvalidCost = tb.ErrInvalidCost
	ErrInvalidKey  = tb.ErrInvalidKey
)

// New returns a limiter with a bucket of the given limit for each key. It returns a
// *ConfigError if the limit or an option is out of range, or if K contains an interface.
func New[K comparable](limit Limit, opts ...Option) (*Limiter[K], error) {
	return cas.New[K](limit, opts...)
}

// NewTokenBucket returns a limiter with string keys, of capacity tokens a key, refilled at
// refillPerSec tokens a second. It panics with a *ConfigError if an argument is out of range.
func NewTokenBucket(capacity int, refillPerSec float64, opts ...Option) *TokenBucket {
	return cas.NewTokenBucket(capacity, refillPerSec, opts...)
}

// NewBucket returns a full bucket. The options about keys have no effect. It returns a
// *ConfigError if the limit or an option is out of range.
func NewBucket(limit Limit, opts ...Option) (*Bucket, error) {
	return cas.NewBucket(limit, opts...)
}

// PerSecond returns the limit with the given burst and refill rate in tokens a second. The
// rate becomes the simplest fraction that rounds to it: see tb.LimitPerSecond. It returns a
// *ConfigError if an argument is out of range.
func PerSecond(capacity int, refillPerSec float64) (Limit, error) {
	return tb.LimitPerSecond(capacity, refillPerSec)
}

// TakeAll takes from all charges at reading t, or from none: see tb.TakeAll.
func TakeAll(t time.Time, charges []Charge, decisions []Decision) (allowed bool, err error) {
	return tb.TakeAll(t, charges, decisions)
}

// WithClock sets the clock. The default is the monotonic clock of the process.
func WithClock(now func() time.Time) Option { return tb.WithClock(now) }

// WithMaxKeys sets the most keys that the limiter holds at any instant, 1 to 1<<30. The
// default is 1<<20.
func WithMaxKeys(n int) Option { return tb.WithMaxKeys(n) }

// WithOverflow sets what happens to a new key when no bucket in a full table is full. The
// default is ForgiveLeast.
func WithOverflow(o Overflow) Option { return tb.WithOverflow(o) }
