package tb

import (
	"context"
	"math"
	"time"
)

// Never is the RetryAfter of a call that no wait can help: its cost is above the
// capacity, or the wait would outlast the 292 years that a time.Duration holds.
const Never time.Duration = math.MaxInt64

// Decision is the answer to one call.
type Decision struct {
	// Allowed says whether the tokens were taken.
	Allowed bool
	// RetryAfter is 0 if the call was allowed. Otherwise it is how long after the
	// call's clock reading the same call will be allowed if nobody else takes
	// tokens in between, exact to the nanosecond, or Never.
	RetryAfter time.Duration
	// Remaining is the number of whole tokens left after this call, granted or
	// not.
	Remaining int
}

// Limiter decides on calls by key. Implementations are safe for concurrent use.
//
// The context is for implementations that leave the process. Those in memory
// decide at once and do not look at it, cancelled or not.
type Limiter interface {
	// Allow takes one token of key's bucket.
	Allow(ctx context.Context, key string) (Decision, error)
	// AllowN takes n tokens of key's bucket, or none. It returns ErrInvalidCost
	// if n is not positive. An n above the capacity is refused with Never.
	AllowN(ctx context.Context, key string, n int) (Decision, error)
}
