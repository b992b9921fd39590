package longrun

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

const day = 24 * time.Hour

// tenYears returns how long the tests simulate: ten years, or one with -short.
func tenYears() time.Duration {
	if testing.Short() {
		return 365 * day
	}
	return 3652 * day
}

// pause returns a random time up to longest. Most times have the magnitude of longest, and some
// have any magnitude from a nanosecond on.
func pause(rng *rand.Rand, longest time.Duration) time.Duration {
	if rng.IntN(4) > 0 {
		return 1 + time.Duration(rng.Int64N(int64(longest)))
	}
	return time.Duration(math.Pow(float64(longest), rng.Float64()))
}

// pair is tb/cas beside the reference, whose buckets never move, with one clock.
type pair struct {
	*testing.T
	limit     tb.Limit
	cas       *cas.TokenBucket
	reference *mutex.TokenBucket
	now       time.Time
	calls     int
}

func newPair(t *testing.T, limit tb.Limit, options ...tb.Option) *pair {
	t.Helper()
	p := &pair{T: t, limit: limit, now: span.Origin}
	options = append(options, tb.WithClock(func() time.Time { return p.now }))
	var err error
	if p.cas, err = cas.New[string](limit, options...); err != nil {
		t.Fatal(err)
	}
	if p.reference, err = mutex.New[string](limit, options...); err != nil {
		t.Fatal(err)
	}
	return p
}

// take takes n tokens of both. The decisions must be the same.
func (p *pair) take(key string, n int) tb.Decision {
	p.calls++
	d, _ := p.cas.AllowN(context.Background(), key, float64(n))
	if want, _ := p.reference.AllowN(context.Background(), key, float64(n)); d != want {
		p.Fatalf("%+v, %s, %d tokens at %v: got %+v, want %+v", p.limit, key, n, p.now, d, want)
	}
	return d
}

// TestTenYearsOfOneBucket drains a bucket after every pause. The tokens that it was granted are
// always the capacity and the supply in whole tokens, and not one more or less.
func TestTenYearsOfOneBucket(t *testing.T) {
	for _, tt := range []struct {
		limit   tb.Limit
		longest time.Duration // the longest pause, in which the bucket does not become full
	}{
		{tb.Limit{Capacity: 1 << 20, Tokens: 3, Per: time.Second}, 3 * day},
		{tb.Limit{Capacity: 5, Tokens: 1, Per: 7 * day}, 27 * day},
		{tb.Limit{Capacity: tb.MaxCapacity, Tokens: 999_983, Per: time.Second}, 1073 * time.Second},
	} {
		p := newPair(t, tt.limit)
		granted := int64(0)
		take := func(n int) tb.Decision {
			d := p.take("a", n)
			if d.Allowed {
				granted += int64(n)
			}
			return d
		}
		take(tt.limit.Capacity)
		rng := rand.New(rand.NewPCG(10, 0))
		for p.now.Sub(span.Origin) < tenYears() {
			p.now = p.now.Add(pause(rng, tt.longest))
			left := take(tt.limit.Capacity).Remaining // the call is refused
			if left > 0 {
				left = take(1 + rng.IntN(left)).Remaining
			}
			if left > 0 {
				take(left)
			}
			supply := big.NewInt(int64(p.now.Sub(span.Origin)))
			supply.Mul(supply, big.NewInt(tt.limit.Tokens))
			want := supply.Quo(supply, big.NewInt(int64(tt.limit.Per))).Int64() + int64(tt.limit.Capacity)
			if granted != want {
				t.Fatalf("%+v: %d granted until %v, want %d", tt.limit, granted, p.now, want)
			}
		}
		t.Logf("%+v: %d tokens in %d calls, the delta ran out %d times or more",
			tt.limit, granted, p.calls, p.now.Sub(span.Origin)/(span.Delta(tt.limit)+tt.longest))
	}
}

// TestTenYearsOfATable calls more keys than the table holds for ten years. It evicts and moves
// their buckets, and compares each decision with the reference, whose buckets never move.
func TestTenYearsOfATable(t *testing.T) {
	const maxKeys, keys = 50, 200
	for _, limit := range []tb.Limit{
		{Capacity: 1000, Tokens: 3, Per: time.Second},
		{Capacity: 5, Tokens: 1, Per: 7 * day},
		{Capacity: 100_000, Tokens: 999_983, Per: time.Second},
	} {
		p := newPair(t, limit, tb.WithMaxKeys(maxKeys), tb.WithOverflow(tb.RefuseNew))
		granted := make([]time.Time, keys) // times of the last grants
		rng := rand.New(rand.NewPCG(10, 1))
		moves := 0
		for p.now.Sub(span.Origin) < tenYears() {
			p.now = p.now.Add(pause(rng, 12*time.Hour))
			for range rng.IntN(16) { // a burst
				p.now = p.now.Add(time.Duration(rng.IntN(1000)))
				// Low numbers are more frequent, so that their keys are in the table when
				// their buckets have to move.
				i := min(rng.IntN(keys), rng.IntN(keys), rng.IntN(keys), rng.IntN(keys))
				key := strconv.Itoa(i)
				before := p.cas.Stats()
				if !p.take(key, 1+rng.IntN(limit.Capacity)).Allowed {
					continue
				}
				if before == p.cas.Stats() && p.now.Sub(granted[i]) > span.Delta(limit) {
					moves++ // the key was in the table, with a base not later than its last grant
				}
				granted[i] = p.now
			}
		}
		stats := p.cas.Stats()
		t.Logf("%+v: %d calls, %d moves, %+v", limit, p.calls, moves, stats)
		if want := p.reference.Stats(); stats != want {
			t.Errorf("%+v: got %+v, want %+v", limit, stats, want)
		}
		if stats.EvictedFull < 10 {
			t.Error("hardly any evictions")
		}
		if span.Delta(limit) < day && moves < 100 {
			t.Error("hardly any moves")
		}
	}
}
