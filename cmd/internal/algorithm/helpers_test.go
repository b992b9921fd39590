package algorithm

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

const second = uint64(time.Second)

// newLimit returns a limit of tokens every per.
func newLimit(t testing.TB, burst int, tokens int64, per time.Duration) *Limit {
	t.Helper()
	l, err := NewLimit(tb.Limit{Capacity: burst, Tokens: tokens, Per: per})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newTake(t testing.TB, name string, l *Limit) Take {
	t.Helper()
	take, err := New(name, l)
	if err != nil {
		t.Fatal(err)
	}
	return take
}

// granted returns how many of n requests of a token each are granted at an instant.
func granted(take Take, now uint64, n int) (count int) {
	for range n {
		if take(now, unitsPerToken) {
			count++
		}
	}
	return count
}

// grant is a granted request.
type grant struct{ instant, units uint64 }

// most returns the most units that were granted in any interval of d, without its first instant.
func most(grants []grant, d uint64) (units uint64) {
	var sum uint64
	first := 0
	for _, g := range grants {
		sum += g.units
		for grants[first].instant+d <= g.instant {
			sum -= grants[first].units
			first++
		}
		units = max(units, sum)
	}
	return units
}

// randomLimit returns a limit whose rate is seldom a whole number of nanoseconds a token.
func randomLimit(t testing.TB, r *rand.Rand) *Limit {
	per := time.Duration(1 + r.Int64N(int64(time.Second)<<r.IntN(8)))
	tokens := 1 + r.Int64N(min(int64(per), 1<<r.IntN(20)))
	return newLimit(t, 1+r.IntN(1<<r.IntN(8)), tokens, per)
}

// traffic returns random requests of about twice the limit: bursts, pauses, and costs of fractions
// of a token, with the instants in order.
func traffic(l *Limit, r *rand.Rand, n int) (requests []grant) {
	now := uint64(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	for range n {
		switch r.IntN(10 + 4*l.limit.Capacity) {
		case 0:
			now += l.window/2 + r.Uint64N(2*l.window)
		case 1: // to the end of a window
			now += l.window - now%l.window - 1
		default:
			now += r.Uint64N(l.window/uint64(l.limit.Capacity) + 1)
		}
		cost := uint64(unitsPerToken)
		if r.IntN(4) == 0 {
			cost = 1 + r.Uint64N(min(l.capacity, 3*unitsPerToken))
		}
		requests = append(requests, grant{now, cost})
	}
	return requests
}
