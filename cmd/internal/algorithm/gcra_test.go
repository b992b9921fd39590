package algorithm

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// mostTokens is the most tokens of a bucket whose unit is a millionth, as it is here.
const mostTokens = 83

// reference returns a call on a bucket of tb/mutex.
func reference(t *testing.T, l *Limit) func(now, cost uint64) bool {
	t.Helper()
	var clock time.Time
	m, err := mutex.New[string](l.limit, tb.WithClock(func() time.Time { return clock }))
	if err != nil {
		t.Fatal(err)
	}
	return func(now, cost uint64) bool {
		clock = time.Unix(0, int64(now))
		d, err := m.AllowCost(context.Background(), "k", float64(cost)/unitsPerToken)
		if err != nil {
			t.Fatal(err)
		}
		return d.Allowed
	}
}

// GCRA and the token bucket are one algorithm: each call has the same answer. The instants are
// the ones at which the rate has supplied whole units, because tb/mutex rounds the supply down to
// units.
func TestGCRAIsATokenBucket(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 100 {
		pers := []time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour}
		l := newLimit(t, 1+r.IntN(mostTokens), 1+r.Int64N(1000), pers[r.IntN(len(pers))])
		take, bucket := newTake(t, "gcra", l), reference(t, l)
		answers := map[bool]int{}
		for i, q := range traffic(l, r, 1000) {
			now := q.instant - q.instant%l.per
			want := bucket(now, q.units)
			answers[want]++
			if got := take(now, q.units); got != want {
				t.Fatalf("%+v, request %d: granted %v, tb/mutex %v", l, i, got, want)
			}
		}
		if answers[true] == 0 || answers[false] == 0 {
			t.Fatalf("%+v: %v", l, answers)
		}
	}
}
