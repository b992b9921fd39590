package replay

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// limiter has the calls that a replay needs. A whole cost is exact in a float64, so
// AllowCost serves all costs.
type limiter interface {
	AllowCost(ctx context.Context, key string, cost float64) (tb.Decision, error)
	Stats() tb.Stats
	Snapshot() iter.Seq2[string, tb.State]
	Restore(iter.Seq2[string, tb.State]) error
}

func (r *replayer) newLimiter(o *Options, limit tb.Limit) (limiter, error) {
	opts := []tb.Option{
		tb.WithClock(func() time.Time { return r.now }),
		tb.WithMaxKeys(o.MaxKeys), tb.WithOverflow(o.Overflow),
	}
	if o.Reference {
		return mutex.New[string](limit, opts...)
	}
	return cas.New[string](limit, opts...)
}

// trial is one limit under trial, with the number of requests by decision.
type trial struct {
	rate    Rate
	burst   Burst
	limiter limiter

	granted      uint64
	refused      uint64
	neverGranted uint64 // the refused requests whose cost is above the burst
}

// decide takes the tokens of a request, and counts the decision.
func (t *trial) decide(key string, cost float64) (tb.Decision, error) {
	d, err := t.limiter.AllowCost(context.Background(), key, cost)
	if err != nil {
		return d, fmt.Errorf("cost %v: %w", cost, err)
	}
	if d.Allowed {
		t.granted++
		return d, nil
	}
	t.refused++
	if d.RetryAfter == tb.Never {
		t.neverGranted++
	}
	return d, nil
}
