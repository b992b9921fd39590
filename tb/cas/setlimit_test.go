package cas

import (
	"errors"
	"math"
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
