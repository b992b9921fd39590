package longrun

import (
	"context"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// exactBucket is the bucket of a key in integers of any size. It is never evicted, because
// under RefuseNew and without late readings, evicting a full bucket makes no difference.
type exactBucket struct {
	full    bool
	units   *big.Int // in the bucket when supply units were supplied
	supply  *big.Int
	granted time.Duration // time of the last grant
}

// exactLimit is a limit in units. A token has scale units.
type exactLimit struct {
	capacity, scale, rate, per *big.Int // rate is in units per period
}

func newExactLimit(l tb.Limit) *exactLimit {
	scale := int64(1)
	for scale < 1_000_000 && int64(l.Capacity)*scale < 1<<23 {
		scale *= 10
	}
	rate := new(big.Int).Mul(big.NewInt(l.Tokens), big.NewInt(scale))
	return &exactLimit{
		big.NewInt(int64(l.Capacity) * scale), big.NewInt(scale), rate, big.NewInt(int64(l.Per)),
	}
}

// supply returns the units that are supplied by now.
func (e *exactLimit) supply(now time.Duration) *big.Int {
	s := new(big.Int).Mul(big.NewInt(int64(now)), e.rate)
	return s.Quo(s, e.per)
}

// when returns the first time by which the units are supplied.
func (e *exactLimit) when(units *big.Int) time.Duration {
	t := new(big.Int).Mul(units, e.per)
	t.Add(t, e.rate).Sub(t, big.NewInt(1))
	return time.Duration(t.Quo(t, e.rate).Int64())
}

// take decides on a call of n tokens now. It changes b if the call is granted and spend is true.
func (e *exactLimit) take(b *exactBucket, now time.Duration, n int, spend bool) (d tb.Decision) {
	supply := e.supply(now)
	units := new(big.Int).Set(e.capacity)
	if !b.full {
		units.Sub(supply, b.supply).Add(units, b.units)
		if units.Cmp(e.capacity) > 0 {
			units.Set(e.capacity)
		}
	}
	cost := new(big.Int).Mul(big.NewInt(int64(n)), e.scale)
	if units.Cmp(cost) < 0 {
		d.Remaining = int(new(big.Int).Quo(units, e.scale).Int64())
		missing := cost.Sub(cost, units)
		d.RetryAfter = e.when(missing.Add(missing, supply)) - now
		return d
	}
	units.Sub(units, cost)
	if spend {
		*b = exactBucket{units: units, supply: supply, granted: now}
	}
	return tb.Decision{Allowed: true, Remaining: int(new(big.Int).Quo(units, e.scale).Int64())}
}

// TestTenYearsOfATable calls more keys than the table holds for ten years. It evicts, resets and
// moves their buckets, and compares each decision with an exact bucket of the same key.
func TestTenYearsOfATable(t *testing.T) {
	const maxKeys, keys = 50, 200
	for _, limit := range []tb.Limit{
		{Capacity: 1000, Tokens: 3, Per: time.Second},
		{Capacity: 5, Tokens: 1, Per: 7 * day},
		{Capacity: 100_000, Tokens: 999_983, Per: time.Second},
	} {
		var now time.Duration
		l, err := cas.New[string](limit, tb.WithMaxKeys(maxKeys), tb.WithOverflow(tb.RefuseNew),
			tb.WithClock(func() time.Time { return span.Origin.Add(now) }))
		if err != nil {
			t.Fatal(err)
		}
		span.Start(l)
		e := newExactLimit(limit)
		all := make([]exactBucket, keys)
		for i := range all {
			all[i].full = true
		}
		check := func(i, n int, d, want tb.Decision, before tb.Stats) {
			t.Helper()
			if d != want && l.Stats().RefusedNew == before.RefusedNew {
				t.Fatalf("%+v, key %d, %d tokens at %v: got %+v, want %+v", limit, i, n, now, d, want)
			}
		}
		rng := rand.New(rand.NewPCG(10, 1))
		ctx := context.Background()
		calls, moves, resets := 0, 0, 0
		for now < tenYears() {
			now += pause(rng, 12*time.Hour)
			for range rng.IntN(16) { // a burst
				now += time.Duration(rng.IntN(1000))
				// Low numbers are more frequent, so that their keys are in the table when
				// their buckets have to move.
				i := min(rng.IntN(keys), rng.IntN(keys), rng.IntN(keys), rng.IntN(keys))
				if rng.IntN(100) == 0 {
					l.Reset(strconv.Itoa(i))
					all[i] = exactBucket{full: true}
					resets++
					continue
				}
				calls++
				n := 1 + rng.IntN(limit.Capacity)
				before, last := l.Stats(), all[i].granted
				d, _ := l.AllowN(ctx, strconv.Itoa(i), n)
				// A new key that is refused for lack of room has a full bucket, and keeps it.
				check(i, n, d, e.take(&all[i], now, n, d.Allowed), before)
				if d.Allowed && before == l.Stats() && now-last > span.Delta(limit) {
					moves++ // the key was in the table, with a base not later than last
				}
			}
		}
		for i := range all {
			before := l.Stats()
			d, _ := l.Peek(ctx, strconv.Itoa(i))
			if d.Allowed { // Stats does not count a Peek that finds no room
				check(i, 1, d, e.take(&all[i], now, 1, false), before)
			}
		}
		stats := l.Stats()
		t.Logf("%+v: %d calls, %d moves, %d resets, %+v", limit, calls, moves, resets, stats)
		if resets < 30 || stats.EvictedFull < 10 {
			t.Error("hardly any evictions or resets")
		}
		if span.Delta(limit) < day && moves < 100 {
			t.Error("hardly any moves")
		}
	}
}
