package cas

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/interleave/subject"
	"github.com/seed-181794aa/ratelimit/tb"
)

func init() { subject.Variants["VARIANT"] = expose }

// expose makes a limiter and names its variables for the scheduler.
func expose(c subject.Config) (subject.Limiter, error) {
	if c.OneBucket {
		b, err := NewBucket(c.Limit, c.Options...)
		if err != nil {
			return nil, err
		}
		b.clock.first.Label("first reading")
		b.state.Label("state")
		return exposedBucket{b}, nil
	}
	l, err := New[string](c.Limit, c.Options...)
	if err != nil {
		return nil, err
	}
	s, err := tb.Apply(c.Options...)
	if err != nil {
		return nil, err
	}
	l.table.Expose(s.MaxKeys, c.Shards)
	l.clock.first.Label("first reading")
	l.ledger.latest.Label("latest")
	l.ledger.full.Label("evicted full")
	l.ledger.inDebt.Label("evicted in debt")
	l.ledger.forgiven.Label("forgiven")
	l.ledger.refused.Label("refused")
	return exposed{l}, nil
}

type exposed struct{ *Limiter[string] }

func (l exposed) Bounded() error { return l.table.Bounded() }
func (l exposed) Agrees() error  { return l.table.Agrees() }

// exposedBucket is a limiter whose keys share one bucket.
type exposedBucket struct{ *Bucket }

func (b exposedBucket) Allow(ctx context.Context, _ string) (tb.Decision, error) {
	return b.Bucket.Allow(ctx)
}

func (b exposedBucket) AllowAt(t time.Time, _ string, n int) (tb.Decision, error) {
	return b.Bucket.AllowAt(t, n)
}

func (b exposedBucket) Peek(ctx context.Context, _ string) (tb.Decision, error) {
	return b.Bucket.Peek(ctx)
}

func (b exposedBucket) Reset(string)    {}
func (b exposedBucket) Len() int        { return 0 }
func (b exposedBucket) Stats() tb.Stats { return tb.Stats{} }
func (b exposedBucket) Bounded() error  { return nil }
func (b exposedBucket) Agrees() error   { return nil }
