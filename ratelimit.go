// Package ratelimit is a token-bucket rate limiter for one key or for millions of them.
//
// A bucket holds up to Limit.Capacity tokens and is refilled continuously at Limit.Tokens
// every Limit.Per. A call takes tokens from a bucket, or takes nothing and reports how long
// to wait, exact to the nanosecond.
//
//	limiter := ratelimit.NewTokenBucket(20, 10) // a burst of 20, refilled at 10 a second
//
//	if !limiter.TryTake(client) {
//		// refuse the client, or use Allow, which returns the wait, too
//	}
//
// # Which type
//
//   - A [Limiter] has a bucket for each key: a client's address, an API key, a tenant. It holds a
//     bounded number of keys ([WithMaxKeys]). Most applications want a Limiter.
//   - A [TokenBucket] is a Limiter with string keys: many buckets, in spite of its name.
//   - A [Bucket] is one bucket without a key, to embed in a connection or a route.
//
// # Which method
//
// Most callers want [Limiter.Allow], or [Limiter.TryTake] if they need only a yes or a no. Both
// take one token. The others take more:
//
//   - [Limiter.AllowN] takes a cost of several tokens, or of a fraction of one: all of it or
//     nothing. [Limiter.AllowAt] is AllowN for a caller that has already read the clock.
//   - [Limiter.Charge], with [AllowAll] or [TakeAll], takes from several buckets, or from none of
//     them: a Limiter for users, one for tenants, and a Bucket for all users, for example.
//   - [Limiter.Wait] takes tokens before the bucket has them, and sleeps until they may be used. It
//     is for workers that must slow down. With a capacity of 1, grants are one token's time apart.
//   - [Limiter.Reserve] does not sleep. It is for callers that wait by themselves, may Cancel, or
//     learn the cost afterwards, as with the tokens of a language model: reserve an estimate, and
//     Settle the [Reservation] with the actual cost. In TakeAll, MayWait of a Charge reserves.
//   - [Limiter.Hold] bans a key: until a time, nothing is granted on it. It is also for pauses that
//     a server has ordered. Keep of a Charge leaves a number of tokens for more important calls.
//
// [Limiter.Peek] and [Limiter.Level] take nothing. [Limiter.SetLimit] changes the limit of all keys
// while they are used, and keeps their tokens. [NewTiered] makes a Limiter whose keys have
// different limits. [Limiter.Snapshot] and [Limiter.Restore] keep the buckets across restarts, and
// [Limiter.Reset], [Limiter.Len] and [Limiter.Stats] are for operators.
//
// A [Bucket] has the methods that make sense for one bucket, but no TryTake and no Reset. They take
// no key, and only Wait takes a context. Its Allow, Peek and Level return no error. AddAt, which
// only a Bucket has, gives tokens back.
//
// # Where the rest is
//
// Package tb states the contract: what is guaranteed to the last unit, and what is not. Package
// tb/cas has the machinery of the types here, and more methods for callers that pass the time.
// Package rate is golang.org/x/time/rate over the same bucket. Package httplimit applies policies
// to HTTP requests, and package outbound makes an http.Client wait for its turn.
package ratelimit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

type (
	// Limit is the capacity and the rate of a bucket: Capacity tokens, and Tokens every Per.
	Limit = tb.Limit
	// Decision is the answer to one call: Allowed, RetryAfter, and Remaining whole tokens.
	Decision = tb.Decision
	// Reservation is the result of Reserve: tokens, and the time until they may be used.
	Reservation = tb.Reservation
	// Level is how full a bucket is: its Tokens, and the times until NextToken and until Full.
	Level = tb.Level
	// Charge is a cost to take from one bucket, as one part of AllowAll or TakeAll. It is an
	// interface: the addresses of a KeyCharge and of a BucketCharge are Charges, and package
	// tb/redis has one more. Only one goroutine at a time may use it. A charge that comes with an
	// error is inert: each call with it returns that error and takes nothing.
	Charge = tb.Charge
	// KeyCharge is what Limiter.Charge returns: a cas.Charge. It must not be copied after a Take.
	// MayWait lets it take in advance, and Delay is the wait; Settle replaces a cost that was taken
	// by the actual cost. Keep lets it take only if a number of tokens is left for others.
	KeyCharge[K comparable] = cas.Charge[K]
	// BucketCharge is what Bucket.Charge returns. It is as a KeyCharge, with the same methods.
	BucketCharge = cas.BucketCharge
	// State is the state of one bucket in a Snapshot.
	State = tb.State
	// Stats describes the table of a Limiter: its keys, evictions, reservations and settled costs.
	Stats = tb.Stats
	// Option configures a Limiter or a Bucket.
	Option = tb.Option
	// Overflow decides what happens to a new key when the table is full: see WithOverflow.
	Overflow = tb.Overflow
	// ConfigError is the error of a bad Limit, Option or key type: Field, Value and Range.
	ConfigError = tb.ConfigError
	// WaitError is the error of Wait if it cannot wait for the tokens. Wait is how long it takes.
	WaitError = tb.WaitError
)

// Never is the RetryAfter of a call that no wait can help.
const Never = tb.Never

// An Overflow applies to a new key if the table has no room and none of its buckets is full.
// ForgiveLeast, the default, evicts the bucket that is nearest to full. RefuseNew refuses new
// keys until a bucket is full.
const (
	ForgiveLeast = tb.ForgiveLeast
	RefuseNew    = tb.RefuseNew
)

// ErrInvalidCost is returned for a cost that is zero, negative, NaN or infinite. ErrInvalidKey
// is returned for a key that does not equal itself, such as a NaN. ErrTableFull is returned by Hold
// if the table has no room for a new key.
var (
	ErrInvalidCost = tb.ErrInvalidCost
	ErrInvalidKey  = tb.ErrInvalidKey
	ErrTableFull   = tb.ErrTableFull
)

// PerSecond returns the limit with the given burst and refill rate in tokens a second. The
// rate becomes the simplest fraction that rounds to it: see tb.LimitPerSecond. It returns a
// *ConfigError if an argument is out of range.
func PerSecond(capacity int, refillPerSec float64) (Limit, error) {
	return tb.LimitPerSecond(capacity, refillPerSec)
}

// AllowAll takes the costs of all charges now, or takes nothing, as in AllowAll(&user, &tenant). It
// returns the decision that matters most: of a refusal the one with the longest RetryAfter, and of
// a grant the one with the fewest tokens left. A charge whose limiter was made WithClock needs
// TakeAll: AllowAll takes nothing, and returns a *ConfigError that names it. A type that wraps such
// a charge must have its method HasClock, too. A charge in a local variable moves to the heap.
func AllowAll(charges ...Charge) (Decision, error) {
	for i, c := range charges {
		if c, ok := c.(interface{ HasClock() bool }); ok && c.HasClock() {
			return Decision{}, &ConfigError{
				Field: fmt.Sprintf("charges[%d]", i), Value: "of a limiter made WithClock",
				Range: "TakeAll, which gets the time of its clock",
			}
		}
	}
	var few [4]Decision
	decisions, allowed, err := tb.TakeAll(time.Now(), charges, few[:0])
	if err != nil || len(decisions) == 0 {
		return Decision{Allowed: allowed}, err
	}
	return slices.MinFunc(decisions, func(a, b Decision) int {
		if allowed {
			return cmp.Compare(a.Remaining, b.Remaining)
		}
		return cmp.Compare(b.RetryAfter, a.RetryAfter)
	}), nil
}

// TakeAll takes the costs of all charges at t, or takes nothing. It returns the decision of each
// charge, in buf if its capacity suffices: see tb.TakeAll. t must be a reading of the clock of each
// limiter: time.Now(), unless WithClock sets another. TakeAll cannot check it. A bucket keeps a
// time that is ahead of its clock, and is refilled only from then on.
func TakeAll(
	t time.Time, charges []Charge, buf []Decision,
) (decisions []Decision, allowed bool, err error) {
	return tb.TakeAll(t, charges, buf)
}

// WithClock sets the clock. now must be safe for concurrent use. The default is the monotonic
// clock of the process. It may stop while the machine is suspended, and in a testing/synctest
// bubble it is another one, so a test makes its limiters in the bubble: see tb.WithClock.
func WithClock(now func() time.Time) Option { return tb.WithClock(now) }

// WithMaxKeys sets the most keys that the limiter holds at any instant, 1 to 1<<30. The
// default is 1<<20.
func WithMaxKeys(n int) Option { return tb.WithMaxKeys(n) }

// WithOverflow sets what happens to a new key when no bucket in a full table is full. The
// default is ForgiveLeast.
func WithOverflow(o Overflow) Option { return tb.WithOverflow(o) }
