package algorithm

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// bucketBytes is the state of a bucket of tb/cas: a base and a word.
const bucketBytes = 16

// tokenBucket is a limiter of tb/cas.
type tokenBucket struct {
	limiter *cas.TokenBucket
	now     time.Time
}

func newTokenBucket(l *Limit, maxKeys int) (*tokenBucket, error) {
	t := new(tokenBucket)
	var err error
	t.limiter, err = cas.New[string](l.limit, tb.WithMaxKeys(maxKeys),
		tb.WithClock(func() time.Time { return t.now }))
	return t, err
}

// Take implements Limiter. AllowCost returns no error, because the cost is positive.
func (t *tokenBucket) Take(key string, now, cost uint64) Result {
	t.now = time.Unix(0, int64(now))
	d, _ := t.limiter.AllowCost(context.Background(), key, Tokens(cost))
	return Result{Granted: d.Allowed, Leaves: now}
}

// Stats implements Limiter.
func (t *tokenBucket) Stats() Stats {
	s := t.limiter.Stats()
	return Stats{
		Keys: s.Keys, Bytes: s.Keys * bucketBytes, MostBytes: bucketBytes,
		Forgotten: s.EvictedInDebt,
	}
}
