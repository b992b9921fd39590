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

// limiter has the calls that a replay needs. For a whole cost AllowAt decides as AllowCost does, in
// less time.
type limiter interface {
	AllowAt(t time.Time, key string, n int) (tb.Decision, error)
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

// decide takes the tokens of a request at a time, and counts the decision. The time must be the
// reading of the limiter's clock.
func (t *trial) decide(now time.Time, key string, cost float64) (d tb.Decision, err error) {
	if n := int(cost); float64(n) == cost {
		d, err = t.limiter.AllowAt(now, key, n)
	} else {
		d, err = t.limiter.AllowCost(context.Background(), key, cost)
	}
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
