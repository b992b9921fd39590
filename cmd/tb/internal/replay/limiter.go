package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// limiter is what a replay needs of an implementation. All costs go through AllowCost:
// a whole number is exact in a float64, and one way is easier to trust than two.
type limiter interface {
	AllowCost(ctx context.Context, key string, cost float64) (tb.Decision, error)
	Stats() tb.Stats
}

// newLimiter returns a limiter of the named implementation.
func newLimiter(impl string, limit tb.Limit, opts ...tb.Option) (limiter, error) {
	switch impl {
	case "cas":
		return cas.New[string](limit, opts...)
	case "mutex":
		return mutex.New[string](limit, opts...)
	}
	return nil, fmt.Errorf("implementation %q: want cas or mutex", impl)
}

// logClock is the clock that all limiters are given: it stands at the time of the line
// that is replayed, and steps back where the log does.
type logClock struct{ now time.Time }

func (c *logClock) read() time.Time { return c.now }

// trial is one limit put to the test.
type trial struct {
	rate    Rate
	burst   Burst
	limiter limiter
	granted uint64 // requests, as are
	refused uint64
	never   uint64 // of the refused: no wait would have helped, the cost is above the burst
}

// decide asks for the tokens of a request, and counts the answer.
func (t *trial) decide(key string, cost float64) (tb.Decision, error) {
	d, err := t.limiter.AllowCost(context.Background(), key, cost)
	switch {
	case err != nil:
		return d, fmt.Errorf("cost %v: %w", cost, err)
	case d.Allowed:
		t.granted++
	case d.RetryAfter == tb.Never:
		t.never++
		fallthrough
	default:
		t.refused++
	}
	return d, nil
}
