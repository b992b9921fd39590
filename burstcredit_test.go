package ratelimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// table is a database table that may read 100 units a second, with five minutes of burst credit.
// Its clock stands still until the test moves it.
type table struct {
	*testing.T
	now     time.Time
	limiter interface {
		AllowCost(ctx context.Context, key string, cost float64) (tb.Decision, error)
	}
}

// eachImplementation runs f on a new table of either implementation.
func eachImplementation(t *testing.T, f func(*table)) {
	limit, err := ratelimit.BurstCredit(100, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cas", "mutex"} {
		t.Run(name, func(t *testing.T) {
			table := &table{T: t, now: time.Unix(0, 0)}
			clock := ratelimit.WithClock(func() time.Time { return table.now })
			var err error
			if name == "cas" {
				table.limiter, err = ratelimit.New[string](limit, clock)
			} else {
				table.limiter, err = mutex.New[string](limit, clock)
			}
			if err != nil {
				t.Fatal(err)
			}
			f(table)
		})
	}
}

func (t *table) read(units float64) tb.Decision {
	t.Helper()
	d, err := t.limiter.AllowCost(ctx, "orders", units)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// drain reads in halves of a unit until a read is refused, and returns the number of halves. The
// next half of a unit comes after 5 ms.
func (t *table) drain() (halves int) {
	t.Helper()
	for {
		d := t.read(0.5)
		if !d.Allowed {
			if d.RetryAfter != 5*time.Millisecond || d.Remaining != 0 {
				t.Fatalf("after %d halves: %+v, want refused for 5ms with 0 remaining", halves, d)
			}
			return halves
		}
		if halves++; halves > 1_000_000 {
			t.Fatal("no read is refused")
		}
	}
}

func TestBurstCreditIsUnusedRate(t *testing.T) {
	eachImplementation(t, func(t *table) {
		for _, tt := range []struct {
			idle   time.Duration
			halves int
		}{
			{0, 60_000}, // a new table has all of its credit
			{0, 0},
			{5 * time.Millisecond, 1},
			{time.Second, 200},
			{5*time.Minute - 5*time.Millisecond, 59_999},
			{5 * time.Minute, 60_000},
			{24 * time.Hour, 60_000},
		} {
			t.now = t.now.Add(tt.idle)
			if got := t.drain(); got != tt.halves {
				t.Errorf("%d halves after %v, want %d", got, tt.idle, tt.halves)
			}
		}
		t.now = t.now.Add(5 * time.Minute)
		if d := t.read(30_000); !d.Allowed || d.Remaining != 0 {
			t.Errorf("30,000 at once: %+v, want granted with 0 remaining", d)
		}
	})
}

// For an hour the table reads at odd moments and at different costs. The units that it grants are
// exactly the units that it had and that the rate supplied.
func TestBurstCreditRoundsNothing(t *testing.T) {
	eachImplementation(t, func(t *table) {
		halves, costs := t.drain(), []float64{0.5, 1, 2, 0.5, 0.5}
		start := t.now
		for i := 0; t.now.Sub(start) < time.Hour; i++ {
			t.now = t.now.Add(7_654_321 * time.Nanosecond)
			if cost := costs[i%len(costs)]; t.read(cost).Allowed {
				halves += int(2 * cost)
			}
		}
		t.now = start.Add(time.Hour + time.Second)
		halves += t.drain()
		if want := 60_000 + 200*3601; halves != want {
			t.Errorf("%d halves granted, want %d", halves, want)
		}
	})
}
