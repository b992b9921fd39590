package tb

import (
	"context"
	"math"
	"time"
)

// Never is the RetryAfter of a call that no wait can help. Its cost is above the capacity, or the
// wait ends after the clock does, 292 years after its first reading.
const Never time.Duration = math.MaxInt64

// Decision is the answer to one call.
type Decision struct {
	// Allowed reports whether the tokens were taken.
	Allowed bool
	// RetryAfter is 0 if the call was allowed. Otherwise it is the time from the call's clock
	// reading until the same call will be allowed, exact to the nanosecond if no tokens are
	// taken in between, or Never.
	RetryAfter time.Duration
	// Remaining is the number of whole tokens left after this call, granted or refused.
	Remaining int
}

// Limiter decides calls by key. Implementations are safe for concurrent use.
//
// The context is for implementations that leave the process. Implementations in memory decide at
// once and ignore it, even if it is cancelled.
type Limiter interface {
	// Allow takes one token of key's bucket.
	Allow(ctx context.Context, key string) (Decision, error)
	// AllowN takes a number of tokens of key's bucket, or none. It returns ErrInvalidCost if the
	// cost is not positive and finite. If it is above the capacity, RetryAfter is Never.
	AllowN(ctx context.Context, key string, cost float64) (Decision, error)
}
