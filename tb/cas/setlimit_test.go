package cas

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// TestChangesUntilTheBasesEnd brings the highest base so near the end that another era has no bases
// for its time. To set the limit that is set already changes nothing.
func TestChangesUntilTheBasesEnd(t *testing.T) {
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
		l.limits.tier(0).Load().reach(l.last - reachStep)

		limit.Capacity = 20
		var refused *tb.ConfigError
		if err := l.set(limit); !errors.As(err, &refused) || l.Limit().Capacity != 10 {
			t.Errorf("%s: error %v, limit %+v, want a *tb.ConfigError and no change", name, err, l.Limit())
		}
		limit.Capacity = 10
		if err := l.set(limit); err != nil || l.Limit() != limit {
			t.Errorf("%s: error %v, limit %+v, want the limit %+v", name, err, l.Limit(), limit)
		}
		if d, err := l.AllowN(t.Context(), "a", 9); err != nil || !d.Allowed || d.Remaining != 0 {
			t.Errorf("%s: AllowN returned %+v, %v, want the 9 tokens that were left", name, d, err)
		}
	}
}

// Few calls write the highest base, because it is recorded up to the end of its step. In a tier the
// blocks are larger, and a step takes as long.
func TestHighestBaseIsRecordedInSteps(t *testing.T) {
	for tiered, step := range map[bool]uint64{false: reachStep, true: reachStep >> tierBits} {
		m := newLayout(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second})
		m.tiered, m.highest = tiered, new(atomic.Uint64)
		for _, tt := range []struct{ base, highest uint64 }{
			{5, step - 1}, {step - 1, step - 1}, {step, 2*step - 1}, {3*step + 1, 4*step - 1},
			{2 * step, 4*step - 1}, {4*step - 1, 4*step - 1}, {4 * step, 5*step - 1},
		} {
			if m.reach(tt.base); m.highest.Load() != tt.highest {
				t.Errorf("tiered %t: after base %d the highest is %d, want %d",
					tiered, tt.base, m.highest.Load(), tt.highest)
			}
		}
	}
}

// A call is under way while the capacity changes. It has a reading that is later than the change,
// and inserts its key with the layout of before. With a block of two nanoseconds and a short delta,
// its base is as far from the base of the change as bases of two eras must be.
func TestCallWithAnEarlierLayoutInsertsItsKey(t *testing.T) {
	const capacity, late = 1 << 30, 30 * time.Second
	var now time.Duration
	l, err := New[string](tb.Limit{Capacity: capacity, Tokens: 1, Per: time.Nanosecond},
		tb.WithClock(func() time.Time { return time.Unix(0, 0).Add(now) }))
	if err != nil {
		t.Fatal(err)
	}
	t0, m := l.clock.read(), l.limits.one.Load()
	lower := tb.Limit{Capacity: capacity - 1, Tokens: 1, Per: time.Nanosecond}
	if err := l.SetLimit(lower); err != nil {
		t.Fatal(err)
	}
	want := request{tokens: capacity}
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

// A bucket is restored, and the clock jumps back before the limit changes.
func TestClockJumpsBetweenRestoreAndSetLimit(t *testing.T) {
	const month = 30 * 24 * time.Hour
	f := newFixture(t)
	_, _ = f.Peek(t.Context(), "a") // starts the clock
	f.now = month
	state := tb.State{Tokens: 4, At: time.Unix(0, 0).Add(month)}
	if err := f.Restore(maps.All(map[string]tb.State{"a": state})); err != nil {
		t.Fatal(err)
	}
	f.now = 0
	if err := f.SetLimit(tb.Limit{Capacity: 1000, Tokens: 1, Per: time.Second}); err != nil {
		t.Fatal(err)
	}
	for _, now := range []time.Duration{0, month} {
		f.now = now
		if l, _ := f.Level(t.Context(), "a"); l.Tokens != 4 {
			t.Errorf("at %v: %v tokens, want 4", now, l.Tokens)
		}
	}
}

// The number of tiers, and how fast a tier may fill a bucket, have bounds.
func TestBoundsOfTiers(t *testing.T) {
	limit := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}
	for _, tt := range []struct {
		n     int
		valid bool
	}{{0, false}, {1, true}, {MaxTiers, true}, {MaxTiers + 1, false}} {
		limits := slices.Repeat([]tb.Limit{limit}, tt.n)
		_, err := NewTiered[string](limits, nil)
		_, reference := mutex.NewTiered[string](limits, nil)
		if (err == nil) != tt.valid || (reference == nil) != tt.valid {
			t.Errorf("%d tiers: error %v, of the reference %v, want valid %t",
				tt.n, err, reference, tt.valid)
		}
	}
	// A block has a quarter of the units of a delta at most.
	for _, per := range []time.Duration{1, 10, 100, 1000, 10_000, time.Second} {
		for shift := range 31 {
			limit := tb.Limit{Capacity: 1 << shift, Tokens: 1, Per: per}
			m := newLayout(limit)
			valid := m.blockBits+tierBits+m.deficitBits <= 61
			if _, err := NewTiered[string]([]tb.Limit{limit}, nil); (err == nil) != valid {
				t.Errorf("%+v: error %v, want valid %t", limit, err, valid)
			}
		}
	}
}

// The bases of a tier end where the bases of the next one begin.
func TestTiersOwnTheirBases(t *testing.T) {
	limit := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}
	for tier := range 3 {
		m, err := newTier(tier, limit, firstInstant(limit))
		if err != nil {
			t.Fatal(err)
		}
		first, last := uint64(tier)<<(64-tierBits), uint64(tier+1)<<(64-tierBits)-1
		if !m.owns(first) || !m.owns(last) || m.owns(first-1) || m.owns(last+1) {
			t.Errorf("tier %d: bases %x to %x, want %x to %x",
				tier, m.firstBase, m.firstBase+m.baseSpan, first, last)
		}
	}
}

// A limiter remembers few eras once the supply has filled their buckets, and few lows in any case.
// What it has forgotten can be collected.
func TestFewErasAreRemembered(t *testing.T) {
	for _, c := range []struct {
		step, period time.Duration
		debt         float64
		most         int
	}{
		{0, time.Second, 0, 1000},
		// a capacity, the minute, and its supply
		{time.Second, time.Second, 0, 16 + 60 + 60 + 2},
		{time.Second, time.Second, 30, 16 + 60 + 60 + 2 + 32},
		{time.Second, time.Millisecond, 30, 60 + 60 + 8},
		// not while the capacity rises
		{time.Hour, time.Second, 30, keptEras + 6},
	} {
		f := newFixture(t)
		f.granted("a", 1)
		if charge, _ := f.Charge("a", 10); c.debt > 0 {
			charge.MayWait(tb.Never)
			for range int(c.debt / 10) {
				if d, _ := charge.Take(time.Unix(0, 0)); !d.Allowed {
					t.Fatal("the debt is refused")
				}
			}
		}
		var forgotten weak.Pointer[layout]
		for i := range 1000 {
			f.now += c.step
			limit := tb.Limit{Capacity: 10 + i%7, Tokens: 1, Per: c.period}
			if err := f.SetLimit(limit); err != nil {
				t.Fatal(err)
			}
			if i == 9 {
				forgotten = weak.Make(f.layout().history.eras[5].layout)
			}
		}
		h := f.layout().history
		lows := 0
		for l := h.lows; l != nil; l = l.older {
			lows++
		}
		if lows > 7 || len(h.eras) > c.most {
			t.Errorf("%+v: %d eras and %d lows are remembered", c, len(h.eras), lows)
		}
		if runtime.GC(); c.most < 1000 && forgotten.Value() != nil {
			t.Errorf("%+v: the layout of a forgotten era is still referred to", c)
		}
		runtime.KeepAlive(f)
	}
}

// A bucket of an era that is forgotten was full, and has had what later limits have supplied.
func TestBucketOfAForgottenEraIsRefilled(t *testing.T) {
	f := newFixture(t)
	f.granted("a", 1)
	limit := f.Limit()
	change := func() {
		t.Helper()
		limit.Per++
		if err := f.SetLimit(limit); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 * keptEras {
		f.now += time.Hour
		change()
	}
	if h := f.layout().history; h.find(f.cell("a").base) >= 0 {
		t.Fatal("the era is remembered")
	}
	limit.Capacity = 1000
	change()
	f.now += 500 * time.Second
	change()
	if level, _ := f.Level(t.Context(), "a"); math.Abs(level.Tokens-510) > 1 {
		t.Errorf("%v tokens, want 510", level.Tokens)
	}
}

// A bucket in debt, and one that is ahead of the clock, keep their tokens through more changes than
// are remembered in any case.
func TestChangesForgetNoDebtAndNoFuture(t *testing.T) {
	const ahead = 30 * time.Second
	future := time.Unix(0, 0).Add(ahead)
	for _, c := range []struct {
		name          string
		capacity      int
		before, after int64 // tokens a second
		step          time.Duration
		use           func(f *fixture) error
		want          float64
	}{
		{"restored in debt", 10, 1, 1, time.Second, func(f *fixture) error {
			state := tb.State{Tokens: -1000, At: time.Unix(0, 0)}
			return f.Restore(maps.All(map[string]tb.State{"a": state}))
		}, -1000 + 300},
		{"ahead of the clock", 10, 1, 1000, time.Second / 1000, func(f *fixture) error {
			_, err := f.AllowAt(future, "a", 10)
			return err
		}, 0},
		{"in debt ahead of the clock", 10, 1000, 1, time.Second, func(f *fixture) error {
			charge, err := f.Charge("a", 10)
			charge.MayWait(tb.Never)
			for range 2 {
				_, err = charge.Take(future)
			}
			return err
		}, -10 - 30*1000 + 300},
		{"settled after a reset", 1000, 1, 1, 5 * time.Second, func(f *fixture) error {
			r, err := f.Reserve(f.t.Context(), "a", 1)
			f.Reset("a")
			return cmp.Or(err, r.Settle(1991))
		}, -990 + 1500},
	} {
		f := newFixture(t)
		limit := tb.Limit{Capacity: c.capacity, Tokens: c.before, Per: time.Second}
		if err := cmp.Or(f.SetLimit(limit), c.use(f)); err != nil {
			t.Fatal(err)
		}
		limit.Tokens = c.after
		for i := range 300 {
			limit.Per = time.Second + time.Duration(i)
			if err := f.SetLimit(limit); err != nil {
				t.Fatal(err)
			}
			f.now += c.step
		}
		if level, _ := f.Level(t.Context(), "a"); math.Abs(level.Tokens-c.want) > 1 {
			t.Errorf("%s: %v tokens, want %v", c.name, level.Tokens, c.want)
		}
	}
}

// setLastLimit changes the limit when there are just enough bases for it.
func (f *fixture) setLastLimit(limit tb.Limit) {
	f.t.Helper()
	m := f.layout()
	m.highest.Store(0)
	for bit := uint64(1) << 63; bit > 0; bit >>= 1 {
		low := m.highest.Load()
		m.highest.Store(low | bit)
		if _, err := m.change(limit, f.clock.read(), 0); err != nil {
			m.highest.Store(low)
		}
	}
	if err := f.SetLimit(limit); err != nil {
		f.t.Fatal(err)
	}
}

// deepen takes whole capacities of the key a until the deepest debt refuses one, and moves the
// bucket each time.
func (f *fixture) deepen() (taken float64) {
	c, _ := f.Charge("a", float64(f.Limit().Capacity))
	c.MayWait(tb.Never)
	for range 300 {
		if d, _ := c.Take(time.Unix(0, 0).Add(f.now)); !d.Allowed {
			return taken
		}
		f.seal("a")
		taken += float64(f.Limit().Capacity)
	}
	f.t.Fatal("the debt has no end")
	return 0
}

// The bases of the era end with the clock's last readings. There a bucket is in the deepest debt,
// and it moves.
func TestDeepestDebtWhereTheBasesEnd(t *testing.T) {
	f := newFixture(t)
	f.granted("a", 1)
	f.setLastLimit(tb.Limit{Capacity: 20, Tokens: 1, Per: time.Second})
	f.now = time.Duration(f.layout().lastInstant - f.clock.firstInstant)
	want := 20 - f.deepen()
	if level, _ := f.Level(t.Context(), "a"); want > -2000 || level.Tokens != want {
		t.Errorf("%v tokens, want %v", level.Tokens, want)
	}
}

// A bucket brings a debt of two billion tokens, and the supply of a century pays a few of them.
func TestDebtFromLargeUnitsWhereTheBasesEnd(t *testing.T) {
	f := newFixture(t)
	if err := f.SetLimit(tb.Limit{Capacity: 1 << 30, Tokens: 1, Per: time.Second}); err != nil {
		t.Fatal(err)
	}
	want := 1<<30 - f.deepen()
	f.setLastLimit(tb.Limit{Capacity: 20, Tokens: 1, Per: 24 * time.Hour})
	for _, now := range []time.Duration{0, time.Duration(horizon)} {
		f.now = now
		f.refused("a", 1)
		days := math.Floor(now.Hours() / 24)
		if level, _ := f.Level(t.Context(), "a"); want != -1<<31 || level.Tokens != want+days {
			t.Errorf("after %v: %v tokens, want %v", now, level.Tokens, want+days)
		}
	}
}

// TestBasesForAHundredMillionChanges computes how many changes a limiter has bases for. The first
// one goes to larger blocks. Each comes a second after the one before.
func TestBasesForAHundredMillionChanges(t *testing.T) {
	for _, l := range edgeLimits {
		var s limits
		s.init(l)
		layouts := []*layout{&s.first}
		if m, err := newTier(1, l, firstInstant(l)); err == nil {
			layouts = append(layouts, m)
		}
		for _, m := range layouts {
			tiered := m.tiered
			var n *layout
			begin := firstInstant(l)
			for i := range 2 {
				l.Capacity = 1 + l.Capacity%1000
				var err error
				m = cmp.Or(n, m)
				if n, err = m.change(l, begin+uint64(i)*1e9, 0); err != nil {
					t.Fatalf("limit %+v, tiered %t: %v", m.limit, tiered, err)
				}
			}
			step := n.firstBase - m.firstBase
			last := n.positionAt(plusHorizon(n.begin)).blocks
			if changes := (n.firstBase + n.baseSpan - last) / step; changes < 100_000_000 {
				t.Errorf("limit %+v, tiered %t: only %d changes", m.limit, tiered, changes)
			}
		}
	}
}
