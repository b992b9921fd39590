package cas_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

type saver interface {
	AllowN(context.Context, string, float64) (tb.Decision, error)
	Snapshot() iter.Seq2[string, tb.State]
	Restore(iter.Seq2[string, tb.State]) error
	Len() int
}

func TestBadStatesAreErrorsAndChangeNothing(t *testing.T) {
	at := time.Now()
	for _, bad := range []map[string]tb.State{
		{"a": {Tokens: 1, At: at}, "b": {Tokens: math.NaN(), At: at}},
		{"a": {Tokens: 1, At: at}, "b": {Tokens: math.Inf(-1), At: at}},
		{"a": {Tokens: 1, At: at}, "b": {Tokens: 1 << 31, At: at}},
		{"a": {Tokens: 1, At: at}, "b": {Tokens: 1}},
		{"a": {Tokens: 1, At: at}, "b": {Tokens: 1, At: at}, "c": {Tokens: 1, At: at}},
	} {
		for _, l := range []saver{
			cas.NewTokenBucket(10, 0.001, tb.WithMaxKeys(2)),
			mutex.NewTokenBucket(10, 0.001, tb.WithMaxKeys(2)),
		} {
			err := l.Restore(maps.All(bad))
			var cfg *tb.ConfigError
			if !errors.As(err, &cfg) {
				t.Errorf("%T, %v: error %v, want a *tb.ConfigError", l, bad, err)
			}
			if n := l.Len(); n != 0 {
				t.Errorf("%T, %v: %d keys after an error", l, bad, n)
			}
		}
	}
}

// A key that goes before its state is read is not listed, and keys behind it are.
func TestSnapshotLeavesOutKeysThatHaveGone(t *testing.T) {
	bound := tb.WithMaxKeys(4)
	for _, l := range []saver{
		cas.NewTokenBucket(10, 0.001, bound), mutex.NewTokenBucket(10, 0.001, bound),
	} {
		take := func(key string, cost float64) {
			if d, err := l.AllowN(t.Context(), key, cost); err != nil || !d.Allowed {
				t.Fatalf("%T: AllowN returned %+v, %v", l, d, err)
			}
		}
		for i, key := range []string{"d", "c", "b", "a"} {
			take(key, float64(2*i+2))
		}
		var listed []string
		for key := range l.Snapshot() {
			if listed = append(listed, key); key == "a" {
				take("d", 8)
				take("new", 1) // evicts c
			}
		}
		if want := []string{"a", "b", "d"}; !slices.Equal(listed, want) {
			t.Errorf("%T: the keys %v, want %v", l, listed, want)
		}
	}
}

// Restore uses and checks the tier of a state only if there are several.
func TestTierOfAStateCountsIfThereAreTiers(t *testing.T) {
	limits := []tb.Limit{
		{Capacity: 10, Tokens: 1, Per: time.Hour}, {Capacity: 10, Tokens: 2, Per: time.Hour},
	}
	at := time.Now()
	clock := tb.WithClock(func() time.Time { return at })
	type tiered interface {
		saver
		Level(context.Context, string) (tb.Level, error)
	}
	one := func(l tiered, err error) tiered {
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, tt := range []struct {
		name  string
		l     tiered
		tier  int
		valid bool
		next  time.Duration // until the bucket has a token more
	}{
		{"cas, one limit", one(cas.New[string](limits[0], clock)), 7, true, time.Hour},
		{"mutex, one limit", one(mutex.New[string](limits[0], clock)), 7, true, time.Hour},
		{"cas, named", one(cas.NewTiered[string](limits, clock)), 1, true, time.Hour / 2},
		{"mutex, named", one(mutex.NewTiered[string](limits, clock)), 1, true, time.Hour / 2},
		{"cas, named, too high", one(cas.NewTiered[string](limits, clock)), 2, false, 0},
		{"mutex, named, too high", one(mutex.NewTiered[string](limits, clock)), 2, false, 0},
		{"cas, named, negative", one(cas.NewTiered[string](limits, clock)), -1, false, 0},
		{"mutex, named, negative", one(mutex.NewTiered[string](limits, clock)), -1, false, 0},
	} {
		state := tb.State{Tokens: 5, At: at, Tier: tt.tier}
		err := tt.l.Restore(maps.All(map[string]tb.State{"a": state}))
		var cfg *tb.ConfigError
		if (err == nil) != tt.valid || err != nil && !errors.As(err, &cfg) {
			t.Errorf("%s: Restore returned %v, want valid %t", tt.name, err, tt.valid)
		}
		level, _ := tt.l.Level(t.Context(), "a")
		if level.NextToken != tt.next {
			t.Errorf("%s: the next token comes in %v, want %v", tt.name, level.NextToken, tt.next)
		}
	}
}

// A restored bucket has the fewer tokens of the two, and a time in the future is now.
func TestRestoreNeverFillsABucket(t *testing.T) {
	now := time.Now()
	l := cas.NewTokenBucket(10, 1, tb.WithClock(func() time.Time { return now }))
	_, _ = l.AllowN(t.Context(), "fewer", 9)
	_, _ = l.AllowN(t.Context(), "more", 1)
	err := l.Restore(maps.All(map[string]tb.State{
		"fewer":  {Tokens: 5, At: now},
		"more":   {Tokens: 5, At: now},
		"future": {Tokens: 3, At: now.Add(time.Hour)},
		"full":   {Tokens: 10, At: now},
		"past":   {Tokens: 0, At: now.Add(-time.Minute)},
		"debt":   {Tokens: -4, At: now.Add(-time.Second)},
	}))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]float64{
		"fewer": 1, "more": 5, "future": 3, "full": 10, "past": 10, "debt": -3,
	} {
		if level, _ := l.Level(t.Context(), key); level.Tokens != want {
			t.Errorf("%s has %v tokens, want %v", key, level.Tokens, want)
		}
	}
	now = now.Add(time.Second)
	if level, _ := l.Level(t.Context(), "future"); level.Tokens != 4 {
		t.Errorf("after a second, future has %v tokens, want 4", level.Tokens)
	}
	if n := l.Len(); n != 4 {
		t.Errorf("%d keys, want 4: full buckets are not stored", n)
	}
}

// Snapshots list each key that stays in the table once, those in the deepest debt first, while
// other callers insert keys and move small maps.
func TestSnapshotWhileTheTableGrows(t *testing.T) {
	const settled = 5000
	l := cas.NewTokenBucket(10, 0.001)
	for i := range settled {
		_, _ = l.AllowN(t.Context(), "settled-"+strconv.Itoa(i), float64(1+i%10))
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for i := range 50_000 {
			select {
			case <-stop:
				return
			default:
				_, _ = l.Allow(t.Context(), "new-"+strconv.Itoa(i))
			}
		}
	})
	for range 8 {
		seen := map[string]bool{}
		last := math.Inf(-1)
		for key, s := range l.Snapshot() {
			if seen[key] {
				t.Fatalf("%s is listed twice", key)
			}
			seen[key] = true
			if s.Tokens < last-0.01 {
				t.Fatalf("%s with %v tokens comes after %v", key, s.Tokens, last)
			}
			last = s.Tokens
		}
		for i := range settled {
			if !seen["settled-"+strconv.Itoa(i)] {
				t.Fatalf("key %d of %d is missing", i, len(seen))
			}
		}
	}
	close(stop)
	wg.Wait()
}
