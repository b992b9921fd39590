package longrun

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/proof/span"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// TestTenYearsOfATable calls more keys than the table holds for ten years. It evicts and moves
// their buckets, and compares each decision with the reference, whose buckets never move.
func TestTenYearsOfATable(t *testing.T) {
	const maxKeys, keys = 50, 200
	for _, limit := range []tb.Limit{
		{Capacity: 1000, Tokens: 3, Per: time.Second},
		{Capacity: 5, Tokens: 1, Per: 7 * day},
		{Capacity: 100_000, Tokens: 999_983, Per: time.Second},
	} {
		now := span.Origin
		options := []tb.Option{tb.WithMaxKeys(maxKeys), tb.WithOverflow(tb.RefuseNew),
			tb.WithClock(func() time.Time { return now })}
		l, err := cas.New[string](limit, options...)
		if err != nil {
			t.Fatal(err)
		}
		reference, err := mutex.New[string](limit, options...)
		if err != nil {
			t.Fatal(err)
		}
		granted := make([]time.Time, keys) // times of the last grants
		rng := rand.New(rand.NewPCG(10, 1))
		ctx := context.Background()
		calls, moves := 0, 0
		for now.Sub(span.Origin) < tenYears() {
			now = now.Add(pause(rng, 12*time.Hour))
			for range rng.IntN(16) { // a burst
				now = now.Add(time.Duration(rng.IntN(1000)))
				// Low numbers are more frequent, so that their keys are in the table when
				// their buckets have to move.
				i := min(rng.IntN(keys), rng.IntN(keys), rng.IntN(keys), rng.IntN(keys))
				key := strconv.Itoa(i)
				calls++
				n, before := 1+rng.IntN(limit.Capacity), l.Stats()
				d, _ := l.AllowN(ctx, key, float64(n))
				if want, _ := reference.AllowN(ctx, key, float64(n)); d != want {
					t.Fatalf("%+v, %s, %d tokens at %v: got %+v, want %+v", limit, key, n, now, d, want)
				}
				if !d.Allowed {
					continue
				}
				if before == l.Stats() && now.Sub(granted[i]) > span.Delta(limit) {
					moves++ // the key was in the table, with a base not later than its last grant
				}
				granted[i] = now
			}
		}
		stats := l.Stats()
		t.Logf("%+v: %d calls, %d moves, %+v", limit, calls, moves, stats)
		if stats != reference.Stats() {
			t.Errorf("%+v: got %+v, want %+v", limit, stats, reference.Stats())
		}
		if stats.EvictedFull < 10 {
			t.Error("hardly any evictions")
		}
		if span.Delta(limit) < day && moves < 100 {
			t.Error("hardly any moves")
		}
	}
}
