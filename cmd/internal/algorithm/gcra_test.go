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
		for _, name := range []string{"gcra", "token-bucket"} {
			limiter, bucket := newLimiter(t, name, l), reference(t, l)
			answers := map[bool]int{}
			for i, q := range traffic(l, r, 1000) {
				now := q.instant - q.instant%l.per
				want := bucket(now, q.units)
				answers[want]++
				if got := limiter.Take("k", now, q.units).Granted; got != want {
					t.Fatalf("%s, %+v, request %d: granted %v, tb/mutex %v", name, l, i, got, want)
				}
			}
			if answers[true] == 0 || answers[false] == 0 {
				t.Fatalf("%+v: %v", l, answers)
			}
		}
	}
}

// At other instants tb/mutex may grant what the exact bucket lacks by less than a unit, and refuses
// nothing that GCRA grants.
func TestGCRADiffersByLessThanAUnit(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	differences := 0
	for range 100 {
		l := newLimit(t, 1+r.IntN(mostTokens), 1+r.Int64N(1000), time.Duration(1e9+r.Int64N(1e12)))
		var s gcra
		var now uint64
		bucket := reference(t, l)
		for i, q := range traffic(l, r, 1000) {
			now = max(now, q.instant)
			next := l.supplied(later(s.arrival, at(now)), q.units)
			if earliest := next.ns - l.window; r.IntN(2) == 0 && earliest > now {
				now = earliest + r.Uint64N(3) // about when it is granted
			}
			next = l.supplied(later(s.arrival, at(now)), q.units)
			want := bucket(now, q.units)
			got := s.take(l, now, q.units).Granted
			if got == want {
				continue
			}
			differences++
			if got || !next.before(l.supplied(at(now), l.capacity+1)) {
				t.Fatalf("%+v, request %d: granted %v, tb/mutex %v", l, i, got, want)
			}
			s.arrival = next
		}
	}
	if differences == 0 {
		t.Error("no request lacked less than a unit")
	}
}
