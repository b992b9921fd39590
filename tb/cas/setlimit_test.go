package cas

import (
	"cmp"
	"maps"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// A call is under way while the capacity changes. It has a reading that is later than the change,
// and inserts its key with the layout of before.
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
	o, _, done, err := l.placeOf("a").insert(m, t0+uint64(late), want)
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

// Debts that deepen by little are recorded together, so that few calls begin again.
func TestFewDebtsAreRecorded(t *testing.T) {
	f := newFixture(t)
	m, records := f.limits.present(0), 0
	for units := uint64(1); units < 1<<50; units += 1 + units/16 {
		if f.limits.owe(m, units) {
			records++
		}
		if owed := f.limits.owed.Load(); owed < m.microsUpTo(units) || f.limits.owe(m, units) {
			t.Fatalf("%d units of debt are not recorded: %d millionths", units, owed)
		}
	}
	if records > 64 {
		t.Errorf("%d records, want at most 64", records)
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
		_, err := NewTiered[string](limits)
		_, reference := mutex.NewTiered[string](limits)
		if (err == nil) != tt.valid || (reference == nil) != tt.valid {
			t.Errorf("%d tiers: error %v, of the reference %v, want valid %t",
				tt.n, err, reference, tt.valid)
		}
	}
	for _, per := range []time.Duration{1, 10, 100, 1000, 10_000, time.Second} {
		for shift := range 31 {
			limit := tb.Limit{Capacity: 1 << shift, Tokens: 1, Per: per}
			if _, err := NewTiered[string]([]tb.Limit{limit}); err != nil {
				t.Errorf("%+v: %v", limit, err)
			}
		}
	}
}

// The fast path decides on a cell only under the limit that the cell was made under: neither in
// another tier nor after a change, whatever the word is.
func TestCellBelongsToOneEraOfOneTier(t *testing.T) {
	limit := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}
	var layouts []*layout
	for tier := range 3 {
		m := newLayout(limit, tier, firstInstant(limit))
		for range 3 {
			layouts = append(layouts, m)
			m = m.change(limit, m.begin, 0)
		}
	}
	for _, own := range layouts {
		c := newCell(content{own.owner, blockOf(own.supply.at(firstInstant(limit))), 0})
		for _, m := range layouts {
			_, _, _, taken := c.take(m, firstInstant(limit), 1)
			if is := m == own; taken != is || m.owns(c) != is {
				t.Errorf("owner %x: take decides under %x: %t", own.owner, m.owner, taken)
			}
			if taken {
				c.word.Store(0)
			}
		}
	}
}

// A limiter remembers few eras once the supply has filled their buckets. What it has forgotten can
// be collected.
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
				forgotten = weak.Make(f.layout().eras[5])
			}
		}
		m := f.layout()
		if len(m.eras) > c.most {
			t.Errorf("%+v: %d eras are remembered", c, len(m.eras))
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
	if m := f.layout(); m.eraOf(f.cell("a"), 0) >= 0 {
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
		{"in debt ahead of the clock in large units", tb.MaxCapacity, 1000, 1, time.Second,
			func(f *fixture) error {
				_, err := f.AllowAt(future, "a", tb.MaxCapacity)
				charge, _ := f.Charge("a", 10)
				charge.MayWait(tb.Never)
				_, err2 := charge.Take(future)
				small := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}
				return cmp.Or(err, err2, f.SetLimit(small))
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
		limit.Capacity, limit.Tokens = f.Limit().Capacity, c.after
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

// At the clock's last readings a bucket is in the deepest debt that the rest of the clock can pay.
func TestDeepestDebtWhereTheClockEnds(t *testing.T) {
	f := newFixture(t)
	f.granted("a", 1)
	if err := f.SetLimit(tb.Limit{Capacity: 20, Tokens: 1, Per: time.Second}); err != nil {
		t.Fatal(err)
	}
	f.now = math.MaxInt64 - 1000*time.Second
	want := 20 - f.deepen()
	if level, _ := f.Level(t.Context(), "a"); want > -900 || level.Tokens != want {
		t.Errorf("%v tokens, want %v", level.Tokens, want)
	}
}

// A bucket brings a debt of two billion tokens, and the supply of a century pays a few of them.
func TestDebtFromLargeUnits(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	f := newFixture(t)
	if err := f.SetLimit(tb.Limit{Capacity: 1 << 30, Tokens: 1, Per: time.Second}); err != nil {
		t.Fatal(err)
	}
	want := 1<<30 - f.deepen()
	if err := f.SetLimit(tb.Limit{Capacity: 20, Tokens: 1, Per: 24 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	for _, now := range []time.Duration{0, century} {
		f.now = now
		f.refused("a", 1)
		days := math.Floor(now.Hours() / 24)
		if level, _ := f.Level(t.Context(), "a"); want != -1<<31 || level.Tokens != want+days {
			t.Errorf("after %v: %v tokens, want %v", now, level.Tokens, want+days)
		}
	}
}

// A Bucket decides as a limiter does through more changes than a limiter remembers in any case, and
// remembers one.
func TestBucketRemembersOneLimit(t *testing.T) {
	for _, ahead := range []time.Duration{0, 3 * time.Second} {
		now := time.Unix(0, 0)
		clock := tb.WithClock(func() time.Time { return now })
		limit := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}
		b, err := NewBucket(limit, clock)
		if err != nil {
			t.Fatal(err)
		}
		reference, err := mutex.New[string](limit, clock)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = b.AllowAt(now, 1)
		_, _ = reference.AllowAt(now, "", 1)
		for i := range 200 {
			limit.Capacity, limit.Tokens = 10+i%7, 1+int64(i%3)
			if err := cmp.Or(b.SetLimit(limit), reference.SetLimit(limit)); err != nil {
				t.Fatal(err)
			}
			now = now.Add(time.Duration(i%5) * 100 * time.Millisecond)
			if i%3 > 0 {
				got, _ := b.AllowAt(now.Add(ahead), float64(1+i%4))
				want, _ := reference.AllowAt(now.Add(ahead), "", float64(1+i%4))
				if got != want {
					t.Fatalf("ahead by %v, after %d changes: %+v, want %+v", ahead, i+1, got, want)
				}
			}
			level, _ := reference.Level(t.Context(), "")
			if got := b.Level(); got != level {
				t.Fatalf("ahead by %v, after %d changes: %+v, want %+v", ahead, i+1, got, level)
			}
			if n := len(b.layout().eras); ahead == 0 && n > 1 {
				t.Fatalf("%d eras after %d changes, want 1", n, i+1)
			}
		}
	}
}
