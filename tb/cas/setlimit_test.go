package cas

import (
	"errors"
	"math"
	"sort"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// TestCapacityChangesUntilTheBasesEnd brings the highest base so near the end that another era has
// no bases for its time. A change of the rate needs none.
func TestCapacityChangesUntilTheBasesEnd(t *testing.T) {
	limit := tb.Limit{Capacity: 10, Tokens: 5, Per: time.Second}
	tiered, err := NewTiered([]tb.Limit{limit, limit}, func(string) int { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	single, err := New[string](limit)
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]struct {
		*TokenBucket
		last uint64
		set  func(tb.Limit) error
	}{
		"one limit": {single, math.MaxUint64, single.SetLimit},
		"tiers": {
			tiered, 1<<(64-tierBits) - 1, func(limit tb.Limit) error { return tiered.SetTier(0, limit) },
		},
	} {
		d, err := l.Allow(t.Context(), "a")
		if err != nil || !d.Allowed {
			t.Fatalf("%s: Allow returned %+v, %v", name, d, err)
		}
		l.limits.slot(0).Load().reach(l.last - reachStep)

		limit.Capacity = 20
		var refused *tb.ConfigError
		if err := l.set(limit); !errors.As(err, &refused) || l.Limit().Capacity != 10 {
			t.Errorf("%s: error %v, limit %+v, want a *tb.ConfigError and no change", name, err, l.Limit())
		}
		limit.Capacity, limit.Tokens = 10, 6
		if err := l.set(limit); err != nil || l.Limit() != limit {
			t.Errorf("%s: error %v, limit %+v, want the limit %+v", name, err, l.Limit(), limit)
		}
		if d, err := l.AllowN(t.Context(), "a", 9); err != nil || !d.Allowed || d.Remaining != 0 {
			t.Errorf("%s: AllowN returned %+v, %v, want the 9 tokens that were left", name, d, err)
		}
		limit.Tokens = 5
	}
}

// A call is under way while the capacity changes. It has a reading that is later than the change, and
// inserts its key with the layout of before. With a block of two nanoseconds and a short delta, its
// base is as far from the base of the change as bases of two eras must be.
func TestCallWithAnEarlierLayoutInsertsItsKey(t *testing.T) {
	const capacity, late = 1 << 30, 30 * time.Second
	var now time.Duration
	l, err := New[string](tb.Limit{Capacity: capacity, Tokens: 1, Per: time.Nanosecond},
		tb.WithClock(func() time.Time { return time.Unix(0, 0).Add(now) }))
	if err != nil {
		t.Fatal(err)
	}
	t0, m := l.clock.read(), l.limits.one.Load()
	if err := l.SetLimit(tb.Limit{Capacity: capacity - 1, Tokens: 1, Per: time.Nanosecond}); err != nil {
		t.Fatal(err)
	}
	want := terms{amount: amount{tokens: capacity}}
	o, done, err := place[string]{l, "a", 0}.insert(m, t0+uint64(late), want)
	if !o.Allowed || !done || err != nil {
		t.Fatalf("insert: %+v, %t, %v", o.Decision, done, err)
	}
	for _, tt := range []struct {
		now    time.Duration
		tokens float64
	}{{0, 0}, {late, 0}, {late + 1000, 1000}} {
		now = tt.now
		if level, _ := l.Level(t.Context(), "a"); level.Tokens != tt.tokens {
			t.Errorf("at %v: %v tokens, want %v", now, level.Tokens, tt.tokens)
		}
	}
}

// The bases of the era end with the clock's last readings. There a bucket is in the deepest debt,
// and it moves.
func TestDeepestDebtWhereTheBasesEnd(t *testing.T) {
	f := newFixture(t)
	f.granted("a", 1)
	m := f.layout()
	limit := tb.Limit{Capacity: 20, Tokens: 1, Per: time.Second}
	highest := uint64(sort.Search(math.MaxInt64, func(n int) bool {
		m.highest.Store(uint64(n) << 1)
		_, err := m.change(limit, f.clock.read())
		return err != nil
	})-1) << 1
	m.highest.Store(highest)
	if err := f.SetLimit(limit); err != nil {
		t.Fatal(err)
	}
	f.now = time.Duration(f.layout().lastInstant - f.clock.firstInstant)
	c, _ := f.Charge("a", 20)
	c.MayWait(tb.Never)
	debt := -20.0
	for debt < 3000 {
		if d, _ := c.Take(time.Unix(0, 0).Add(f.now)); !d.Allowed {
			break
		}
		f.seal("a") // the next charge moves the bucket
		debt += 20
	}
	if level, _ := f.Level(t.Context(), "a"); debt < 2000 || level.Tokens != -debt {
		t.Errorf("%v tokens, want %v", level.Tokens, -debt)
	}
}

// TestCapacityCanChangeHalfAMillionTimes computes how many changes of the capacity a limiter has
// bases for.
func TestCapacityCanChangeHalfAMillionTimes(t *testing.T) {
	for _, l := range edgeLimits {
		var s limits
		s.init(l)
		first := []*layout{&s.first}
		if m, err := newTier(1, l, firstInstant(l)); err == nil {
			first = append(first, m)
		}
		for _, m := range first {
			l.Capacity = 1 + l.Capacity%1000
			n, err := m.change(l, firstInstant(m.limit))
			if err != nil {
				t.Errorf("limit %+v, tiered %t: %v", m.limit, m.tiered, err)
				continue
			}
			now := m.positionAt(firstInstant(m.limit)).blocks
			step := n.firstBase - max(now, m.firstBase)
			last := n.positionAt(plusHorizon(n.begin)).blocks
			if changes := (n.firstBase + n.lastBase - last) / step; changes < 500_000 {
				t.Errorf("limit %+v, tiered %t: only %d changes", m.limit, m.tiered, changes)
			}
		}
	}
}
