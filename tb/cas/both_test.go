package cas_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// both is what the tests in this file call on both implementations.
type both interface {
	tb.Limiter
	Level(ctx context.Context, key string) (tb.Level, error)
	Peek(ctx context.Context, key string) (tb.Decision, error)
	Reserve(ctx context.Context, key string, cost float64) (tb.Reservation, error)
	AllowAt(t time.Time, key string, cost float64) (tb.Decision, error)
	SetLimit(limit tb.Limit) error
	Limit() tb.Limit
	SetTier(tier int, limit tb.Limit) error
	Tiers() []tb.Limit
	Restore(iter.Seq2[string, tb.State]) error
	Reset(key string)
	Stats() tb.Stats
}

// onBoth runs a test on both implementations. If limits has several, calls name the tier in *tier
// or, if that is nil, only charges name tiers.
func onBoth(
	t *testing.T, now *time.Time, limits []tb.Limit, tier *int, run func(*testing.T, both),
	opts ...tb.Option,
) {
	begin := *now
	opts = append(opts, tb.WithClock(func() time.Time { return *now }))
	newCAS := func() (both, error) {
		if len(limits) == 1 {
			return cas.New[string](limits[0], opts...)
		}
		return cas.NewTiered[string](limits, opts...)
	}
	newMutex := func() (both, error) {
		if len(limits) == 1 {
			return mutex.New[string](limits[0], opts...)
		}
		return mutex.NewTiered[string](limits, opts...)
	}
	for name, newLimiter := range map[string]func() (both, error){"cas": newCAS, "mutex": newMutex} {
		t.Run(name, func(t *testing.T) {
			*now = begin
			l, err := newLimiter()
			if err != nil {
				t.Fatal(err)
			}
			_, _ = l.Level(t.Context(), "") // starts the clock
			if len(limits) > 1 && tier != nil {
				l = inTier{l, t, now, tier}
			}
			run(t, l)
		})
	}
}

// inTier is a limiter whose calls name a tier.
type inTier struct {
	both
	t    *testing.T
	now  *time.Time
	tier *int
}

func (l inTier) charge(key string, cost float64) settledCharge {
	l.t.Helper()
	c, err := costIn(l.both, *l.tier, key, cost)
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

func (l inTier) AllowAt(t time.Time, key string, cost float64) (tb.Decision, error) {
	return l.charge(key, cost).Take(t)
}

func (l inTier) AllowN(_ context.Context, key string, cost float64) (tb.Decision, error) {
	return l.AllowAt(*l.now, key, cost)
}

func (l inTier) Allow(ctx context.Context, key string) (tb.Decision, error) {
	return l.AllowN(ctx, key, 1)
}

func (l inTier) Peek(_ context.Context, key string) (tb.Decision, error) {
	return l.charge(key, 1).Peek(*l.now)
}

func (l inTier) Level(_ context.Context, key string) (tb.Level, error) {
	return l.charge(key, 1).Level(*l.now)
}

func tokensOf(t *testing.T, l both, key string) float64 {
	t.Helper()
	level, err := l.Level(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return level.Tokens
}

// Peek decides by the limit of the key's tier, also after the key has changed its tier.
func TestPeekInATier(t *testing.T) {
	now := time.Unix(100, 0)
	tier := 0
	limits := []tb.Limit{
		{Capacity: 20, Tokens: 1, Per: time.Second}, {Capacity: 10, Tokens: 1, Per: time.Hour},
	}
	onBoth(t, &now, limits, &tier, func(t *testing.T, l both) {
		tier = 0
		if d, _ := l.AllowN(t.Context(), "a", 5); d.Remaining != 15 {
			t.Fatal(d)
		}
		for _, tt := range []struct{ tier, remaining int }{{0, 14}, {1, 9}} {
			tier = tt.tier
			want := tb.Decision{Allowed: true, Remaining: tt.remaining}
			if d, err := l.Peek(t.Context(), "a"); err != nil || d != want {
				t.Errorf("tier %d: %+v, %v, want %+v", tier, d, err, want)
			}
		}
	})
}

// A reservation puts a bucket into debt, and the limit changes more often than the limiter
// remembers. The supply pays the debt, and nothing else does.
func TestChangesForgetNoDebtOfAReservation(t *testing.T) {
	now := time.Unix(100, 0)
	limit := tb.Limit{Capacity: 1000, Tokens: 1, Per: time.Second}
	onBoth(t, &now, []tb.Limit{limit}, nil, func(t *testing.T, l both) {
		if d, _ := l.AllowN(t.Context(), "a", 1000); !d.Allowed {
			t.Fatal(d)
		}
		if r, _ := l.Reserve(t.Context(), "a", 1000); !r.Allowed || r.Delay() != 1000*time.Second {
			t.Fatalf("%+v", r)
		}
		for i := range 80 {
			now = now.Add(20 * time.Second)
			next := limit
			next.Capacity += 1 - i%2
			if err := l.SetLimit(next); err != nil {
				t.Fatal(err)
			}
		}
		if got := tokensOf(t, l, "a"); got != 600 {
			t.Errorf("%v tokens, want the supply of 1600 s without the debt of 1000", got)
		}
	})
}

// The old limit of the tier has supplied 0.9 of its coarse unit when it ends. A key that enters the
// tier at that instant, or with an older reading, has not had that supply.
func TestKeyEntersATierThatHasChanged(t *testing.T) {
	now := time.Unix(100, 0)
	tier := 0
	limits := []tb.Limit{
		{Capacity: 10, Tokens: 1, Per: time.Hour},
		{Capacity: 1 << 23, Tokens: 1, Per: 10 * time.Second},
	}
	onBoth(t, &now, limits, &tier, func(t *testing.T, l both) {
		for _, late := range []time.Duration{0, 1, time.Second} {
			tier = 0
			key := late.String()
			if d, _ := l.Allow(t.Context(), key); !d.Allowed {
				t.Fatal(d)
			}
			if err := l.SetTier(1, limits[1]); err != nil {
				t.Fatal(err)
			}
			now = now.Add(9 * time.Second)
			if err := l.SetTier(1, tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}); err != nil {
				t.Fatal(err)
			}
			tier = 1
			if d, _ := l.AllowAt(now.Add(-late), key, 9); !d.Allowed || d.Remaining != 0 {
				t.Fatalf("late by %v: %+v, want granted", late, d)
			}
			if got := tokensOf(t, l, key); got > 0.01 {
				t.Errorf("late by %v: %v tokens more", late, got)
			}
		}
	})
}

// The clock ends 292 years after its first reading for all tiers, whatever their periods are.
func TestTiersShareTheEndOfTheClock(t *testing.T) {
	const year = 365 * 24 * time.Hour
	now := time.Unix(100, 0)
	tier := 1
	limits := []tb.Limit{
		{Capacity: 10, Tokens: 1, Per: time.Second},
		{Capacity: 100, Tokens: 10, Per: 100 * year},
	}
	onBoth(t, &now, limits, &tier, func(t *testing.T, l both) {
		if d, _ := l.AllowN(t.Context(), "a", 100); !d.Allowed {
			t.Fatal(d)
		}
		for n, want := range map[int]time.Duration{28: 280 * year, 30: tb.Never} {
			if d, _ := l.AllowN(t.Context(), "a", float64(n)); d.Allowed || d.RetryAfter != want {
				t.Errorf("%d tokens: %+v, want RetryAfter %v", n, d, want)
			}
		}
	})
}

// A restored bucket gets the present rate's supply of the whole time, whether the limit has changed
// in this process or not.
func TestRestoreAfterSetLimit(t *testing.T) {
	now := time.Unix(1e6, 0)
	second := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}
	for _, limits := range [][2]tb.Limit{
		{{Capacity: 10, Tokens: 1, Per: time.Minute}, second},
		{{Capacity: 1000, Tokens: 7, Per: time.Second}, second},
	} {
		onBoth(t, &now, limits[:1], nil, func(t *testing.T, l both) {
			down := now.Add(-6 * time.Second)
			now = now.Add(time.Millisecond)
			if err := l.SetLimit(limits[1]); err != nil {
				t.Fatal(err)
			}
			now = now.Add(-time.Millisecond + time.Second/2)
			err := l.Restore(maps.All(map[string]tb.State{
				"empty": {Tokens: 0, At: down},
				"debt":  {Tokens: -8, At: down},
				"some":  {Tokens: 1.25, At: down},
				"now":   {Tokens: 3, At: now.Add(-time.Second / 4)},
				"long":  {Tokens: 3, At: now.Add(-100 * 365 * 24 * time.Hour)},
			}))
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range map[string]float64{
				"empty": 6.5, "debt": -1.5, "some": 7.75, "now": 3.25, "long": 10,
			} {
				if got := tokensOf(t, l, key); math.Abs(got-want) > 2e-6 {
					t.Errorf("%s has %v tokens, want %v", key, got, want)
				}
			}
		})
	}
}

// A key that is restored twice needs one place, and gets the fewer tokens.
func TestRestoreOfOneKeyTwice(t *testing.T) {
	now := time.Unix(1e6, 0)
	limits := []tb.Limit{{Capacity: 10, Tokens: 1, Per: time.Second}}
	onBoth(t, &now, limits, nil, func(t *testing.T, l both) {
		err := l.Restore(func(yield func(string, tb.State) bool) {
			_ = yield("a", tb.State{Tokens: 5, At: now}) && yield("a", tb.State{Tokens: 3, At: now}) &&
				yield("a", tb.State{Tokens: 4, At: now})
		})
		if got := tokensOf(t, l, "a"); err != nil || got != 3 {
			t.Errorf("%v tokens, error %v, want 3", got, err)
		}
	}, tb.WithMaxKeys(1))
}

// A bucket whose state was restored, perhaps in another tier, gets nothing back for a grant before.
func TestCancelAfterRestoreGivesNothingBack(t *testing.T) {
	now := time.Unix(1e6, 0)
	limits := []tb.Limit{
		{Capacity: 10, Tokens: 1, Per: time.Second}, {Capacity: 1000, Tokens: 1, Per: time.Second},
	}
	onBoth(t, &now, limits, nil, func(t *testing.T, l both) {
		for tier, key := range []string{"a", "b"} {
			c, err := chargeIn(l, 0, key)
			if err != nil {
				t.Fatal(err)
			}
			if d, err := c.Take(now); err != nil || !d.Allowed {
				t.Fatalf("Take: %+v, %v", d, err)
			}
			states := map[string]tb.State{key: {Tokens: 2, At: now, Tier: tier}}
			if err := l.Restore(maps.All(states)); err != nil {
				t.Fatal(err)
			}
			c.Cancel()
			if got := tokensOf(t, l, key); got != 2 {
				t.Errorf("restored in tier %d: %v tokens, want 2", tier, got)
			}
		}
	})
}

// A table that is full refuses the key of a state, as it refuses any other new key, but counts no
// call that was refused.
func TestRestoreRefusesNoCall(t *testing.T) {
	now := time.Unix(1e6, 0)
	limits := []tb.Limit{{Capacity: 10, Tokens: 1, Per: time.Second}}
	onBoth(t, &now, limits, nil, func(t *testing.T, l both) {
		if d, err := l.Allow(t.Context(), "a"); err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		err := l.Restore(maps.All(map[string]tb.State{"b": {Tokens: 5, At: now}}))
		s, got := l.Stats(), tokensOf(t, l, "a")
		if err != nil || s.Keys != 1 || s.RefusedNew != 0 || got != 9 {
			t.Errorf("%v, %+v, and a has %v tokens", err, s, got)
		}
	}, tb.WithMaxKeys(1), tb.WithOverflow(tb.RefuseNew))
}

// A key that is restored evicts buckets that were full for a minute, as any other new key does.
func TestRestoreDropsIdleKeys(t *testing.T) {
	now := time.Unix(1e6, 0)
	limits := []tb.Limit{{Capacity: 10, Tokens: 1, Per: time.Second}}
	onBoth(t, &now, limits, nil, func(t *testing.T, l both) {
		_, _ = l.Allow(t.Context(), "a")
		now = now.Add(time.Minute + time.Second)
		err := l.Restore(maps.All(map[string]tb.State{"b": {Tokens: 5, At: now}}))
		if s := l.Stats(); err != nil || s.Keys != 1 || s.EvictedFull != 1 {
			t.Errorf("%v, %+v, want b alone", err, s)
		}
	})
}

// With the greater capacity a token is one unit, and with the smaller one it is a million. A debt
// that is too deep for a reservation there stays as deep.
func TestDebtIsAsDeepInSmallUnits(t *testing.T) {
	const capacity = 1 << 24
	now := time.Unix(1e6, 0)
	large := tb.Limit{Capacity: capacity, Tokens: 1, Per: time.Second}
	onBoth(t, &now, []tb.Limit{large}, nil, func(t *testing.T, l both) {
		for range 2 {
			if r, _ := l.Reserve(t.Context(), "a", capacity); !r.Allowed {
				t.Fatal(r.Decision)
			}
		}
		if err := l.SetLimit(tb.Limit{Capacity: 1, Tokens: 1, Per: time.Second}); err != nil {
			t.Fatal(err)
		}
		if r, _ := l.Reserve(t.Context(), "a", 1); r.Allowed || r.RetryAfter != capacity*time.Second {
			t.Errorf("%+v, want refused for %v", r.Decision, capacity*time.Second)
		}
		if got := tokensOf(t, l, "a"); got != -capacity {
			t.Errorf("%v tokens, want %v", got, -capacity)
		}
		if err := l.SetLimit(large); err != nil {
			t.Fatal(err)
		}
		if got := tokensOf(t, l, "a"); got != -capacity {
			t.Errorf("%v tokens, want %v", got, -capacity)
		}
	})
}

// A limiter of New has one tier, and SetLimit and Limit are for tier 0 of several. So all methods
// work whatever made the limiter.
func TestEachLimiterHasTiers(t *testing.T) {
	now := time.Unix(1e6, 0)
	all := []tb.Limit{
		{Capacity: 10, Tokens: 1, Per: time.Second}, {Capacity: 20, Tokens: 1, Per: time.Second},
	}
	next := tb.Limit{Capacity: 30, Tokens: 1, Per: time.Second}
	for n := 1; n <= len(all); n++ {
		tier := n - 1
		onBoth(t, &now, all[:n], &tier, func(t *testing.T, l both) {
			if got := l.Tiers(); !slices.Equal(got, all[:n]) {
				t.Errorf("tiers %v, want %v", got, all[:n])
			}
			if err := l.SetLimit(next); err != nil || l.Limit() != next || l.Tiers()[0] != next {
				t.Errorf("SetLimit: %v, limit %v, tiers %v", err, l.Limit(), l.Tiers())
			}
			if err := l.SetTier(n-1, next); err != nil || l.Tiers()[n-1] != next {
				t.Errorf("SetTier: %v, tiers %v", err, l.Tiers())
			}
			if got := tokensOf(t, l, "a"); got != 30 {
				t.Errorf("%v tokens, want 30", got)
			}
			for _, bad := range []int{-1, n} {
				var cfg *tb.ConfigError
				want := fmt.Sprintf("0 to %d", n-1)
				if err := l.SetTier(bad, next); !errors.As(err, &cfg) || cfg.Range != want {
					t.Errorf("SetTier(%d): %v, want the range %s", bad, err, want)
				}
				if _, err := chargeIn(l, bad, "a"); !errors.As(err, &cfg) || cfg.Range != want {
					t.Errorf("ChargeIn(%d): %v, want the range %s", bad, err, want)
				}
			}
			if _, err := chargeIn(l, n-1, "a"); err != nil {
				t.Error(err)
			}
		})
	}
}

// settledCharge is a charge whose cost can be replaced.
type settledCharge interface {
	tb.Charge
	Level(t time.Time) (tb.Level, error)
	Settle(actual float64) error
}

// chargeIn returns a charge of a token in a tier.
func chargeIn(l both, tier int, key string) (settledCharge, error) {
	return costIn(l, tier, key, 1)
}

// costIn returns a charge in a tier.
func costIn(l both, tier int, key string, cost float64) (settledCharge, error) {
	if in, ok := l.(inTier); ok {
		l = in.both
	}
	if l, ok := l.(*cas.TokenBucket); ok {
		c, err := l.ChargeIn(tier, key, cost)
		return &c, err
	}
	c, err := l.(*mutex.TokenBucket).ChargeIn(tier, key, cost)
	return &c, err
}

// A charge in a tier that does not exist returns its error from each call, and so does one with an
// invalid cost. Neither moves its key to another tier.
func TestInertChargesInTiers(t *testing.T) {
	now := time.Unix(0, 0)
	limits := []tb.Limit{
		{Capacity: 5, Tokens: 1, Per: time.Hour}, {Capacity: 20, Tokens: 20, Per: time.Second},
	}
	onBoth(t, &now, limits, nil, func(t *testing.T, l both) {
		if d, err := l.AllowN(t.Context(), "a", 4); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		for _, tt := range []struct {
			tier int
			cost float64
		}{{-1, 1}, {2, 1}, {math.MaxInt, -1}, {1, -5}, {1, math.NaN()}} {
			c, err := costIn(l, tt.tier, "a", tt.cost)
			if err == nil {
				t.Fatalf("no error for %+v", tt)
			}
			other, _ := costIn(l, 0, "a", 1)
			_, peeked := c.Peek(now)
			_, took := c.Take(now)
			_, _, alone := tb.TakeAll(now, []tb.Charge{c}, nil)
			_, _, last := tb.TakeAll(now, []tb.Charge{other, c}, nil)
			for _, got := range []error{peeked, took, alone, last} {
				if !errors.Is(got, err) {
					t.Errorf("%+v: error %v, want that of ChargeIn, %v", tt, got, err)
				}
			}
			c.(interface{ Enter(time.Time) }).Enter(now)
			c.Cancel()
			if err := c.Settle(1); err != nil {
				t.Errorf("%+v: Settle: %v", tt, err)
			}
			if v, err := l.Level(t.Context(), "a"); err != nil || v.Tokens != 1 || v.NextToken != time.Hour {
				t.Errorf("%+v: level %+v, %v, want one token in tier 0", tt, v, err)
			}
		}
	})
}

// takeIn takes a cost in a tier at a reading.
func takeIn(t *testing.T, l both, tier int, key string, cost float64, at time.Time) tb.Decision {
	t.Helper()
	c, err := costIn(l, tier, key, cost)
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Take(at)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A refused charge moves its key to its tier, alone and beside others. The new tier supplies the
// bucket from then on.
func TestRefusedChargesEnterTheirTiers(t *testing.T) {
	now, tier := time.Unix(0, 0), 0
	limits := []tb.Limit{
		{Capacity: 5, Tokens: 1, Per: 24 * time.Hour}, {Capacity: 20, Tokens: 1, Per: time.Second},
	}
	onBoth(t, &now, limits, &tier, func(t *testing.T, l both) {
		for _, key := range []string{"alone", "beside another"} {
			if d, err := l.AllowN(t.Context(), key, 5); err != nil || !d.Allowed {
				t.Fatalf("%s: %+v, %v", key, d, err)
			}
			for _, want := range []bool{false, true} {
				c, err := chargeIn(l, 1, key)
				if err != nil {
					t.Fatal(err)
				}
				charges := []tb.Charge{c}
				if key != "alone" {
					other, err := chargeIn(l, 0, "other")
					if err != nil {
						t.Fatal(err)
					}
					charges = append(charges, other)
				}
				decisions, allowed, err := tb.TakeAll(now, charges, nil)
				if err != nil || allowed != want || !want && decisions[0].RetryAfter != time.Second {
					t.Errorf("%s: %+v, %t, %v, want %t", key, decisions, allowed, err, want)
				}
				now = now.Add(time.Second)
			}
		}
	})
}

// A key that has left the table when its cost is settled comes back in the tier of the charge,
// unless another call has made a bucket in its own tier.
func TestSettleBringsAKeyBackInTheTierOfTheCharge(t *testing.T) {
	now := time.Unix(0, 0)
	limits := []tb.Limit{
		{Capacity: 10, Tokens: 1, Per: time.Second}, {Capacity: 1000, Tokens: 1, Per: time.Second},
		{Capacity: 800, Tokens: 1, Per: time.Second},
	}
	onBoth(t, &now, limits, nil, func(t *testing.T, l both) {
		for between, want := range map[string]float64{
			"nothing": 1000 - 499, "another tier": 800 - 1 - 499, "no tier": -10,
		} {
			c, err := chargeIn(l, 1, between)
			if err != nil {
				t.Fatal(err)
			}
			if d, err := c.Take(now); err != nil || !d.Allowed {
				t.Fatalf("Take: %+v, %v", d, err)
			}
			if d, err := l.Allow(t.Context(), "other"); err != nil || !d.Allowed { // evicts the key
				t.Fatalf("Allow: %+v, %v", d, err)
			}
			switch between {
			case "another tier":
				other, err := chargeIn(l, 2, between)
				if err != nil {
					t.Fatal(err)
				}
				if d, err := other.Take(now); err != nil || !d.Allowed {
					t.Fatalf("Take: %+v, %v", d, err)
				}
			case "no tier":
				if d, err := l.Allow(t.Context(), between); err != nil || !d.Allowed {
					t.Fatalf("Allow: %+v, %v", d, err)
				}
			}
			if err := c.Settle(500); err != nil {
				t.Fatal(err)
			}
			if got := tokensOf(t, l, between); got != want {
				t.Errorf("%s between: %v tokens, want %v", between, got, want)
			}
		}
	}, tb.WithMaxKeys(1))
}

// A settlement leaves the key in its tier, which may be another one than at the time of the charge.
func TestSettleKeepsTheTierOfTheKey(t *testing.T) {
	now, tier := time.Unix(0, 0), 0
	limits := []tb.Limit{
		{Capacity: 100, Tokens: 1, Per: time.Second}, {Capacity: 5, Tokens: 1, Per: time.Second},
	}
	onBoth(t, &now, limits, &tier, func(t *testing.T, l both) {
		c, err := chargeIn(l, 1, "a")
		if err != nil {
			t.Fatal(err)
		}
		if d, err := c.Take(now); err != nil || !d.Allowed {
			t.Fatalf("Take: %+v, %v", d, err)
		}
		if d, err := l.Allow(t.Context(), "a"); err != nil || !d.Allowed { // in tier 0
			t.Fatalf("Allow: %+v, %v", d, err)
		}
		now = now.Add(time.Minute)
		if err := c.Settle(0); err != nil {
			t.Fatal(err)
		}
		if got := tokensOf(t, l, "a"); got != 64 {
			t.Errorf("%v tokens, want 64", got)
		}
	})
}

// A key leaves a tier whose limit has changed, by calls with readings from before the change. The
// bucket has had the supply until the change, and gets it no second time.
func TestLateCallLeavesATierThatHasChanged(t *testing.T) {
	now := time.Unix(100, 0)
	limits := []tb.Limit{
		{Capacity: 1000, Tokens: 1, Per: time.Hour}, {Capacity: 1000, Tokens: 1000, Per: time.Second},
	}
	onBoth(t, &now, limits, nil, func(t *testing.T, l both) {
		now = now.Add(time.Minute)
		if d := takeIn(t, l, 1, "a", 1000, now); !d.Allowed {
			t.Fatal(d)
		}
		late := now.Add(-time.Second)
		for i := range 5 {
			if d := takeIn(t, l, 0, "a", 1, now); d.Allowed {
				t.Fatalf("after %d changes: %+v, want refused", i, d)
			}
			next := limits[0]
			next.Capacity += 1 - i%2
			if err := l.SetTier(0, next); err != nil {
				t.Fatal(err)
			}
			if d := takeIn(t, l, 1, "a", 1, late); d.Allowed {
				t.Fatalf("after %d changes: %+v, want refused", i+1, d)
			}
		}
	})
}

// A period above 146 years has begun before the first reading, so a state of before is refilled.
func TestRestoreInATierWithALongPeriod(t *testing.T) {
	const year = 365 * 24 * time.Hour
	now := time.Unix(1e9, 0)
	limits := []tb.Limit{
		{Capacity: 10, Tokens: 1, Per: 150 * year},
		{Capacity: 1000, Tokens: int64(200 * year / time.Hour * 1000), Per: 200 * year},
	}
	onBoth(t, &now, limits, nil, func(t *testing.T, l both) {
		state := tb.State{Tokens: 0, At: now.Add(-time.Hour / 2), Tier: 1}
		err := l.Restore(maps.All(map[string]tb.State{"a": state}))
		if got := tokensOf(t, l, "a"); err != nil || math.Abs(got-500) > 0.001 {
			t.Errorf("%v tokens, error %v, want 500", got, err)
		}
	})
}

// Restore compares what the state and the bucket have after all changes of the limit.
func TestRestoreOfABucketFromBeforeAChange(t *testing.T) {
	now := time.Unix(1e6, 0)
	limit := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Hour}
	onBoth(t, &now, []tb.Limit{limit}, nil, func(t *testing.T, l both) {
		for key, spent := range map[string]int{"fewer": 8, "more": 2} {
			if d, _ := l.AllowN(t.Context(), key, float64(spent)); !d.Allowed {
				t.Fatal(d)
			}
		}
		next := tb.Limit{Capacity: 1_000_000, Tokens: 1, Per: time.Hour} // with larger units
		if err := l.SetLimit(next); err != nil {
			t.Fatal(err)
		}
		err := l.Restore(maps.All(map[string]tb.State{
			"fewer": {Tokens: 5, At: now}, "more": {Tokens: 5, At: now},
		}))
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]float64{"fewer": 2, "more": 5} {
			if got := tokensOf(t, l, key); got != want {
				t.Errorf("%s: %v tokens, want %v", key, got, want)
			}
		}
	})
}

// What the rate has supplied since a state may need more than 64 bits.
func TestRestoreOfABucketFromLongBeforeAChange(t *testing.T) {
	now := time.Unix(1e9, 0)
	limit := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Hour}
	onBoth(t, &now, []tb.Limit{limit}, nil, func(t *testing.T, l both) {
		if err := l.SetLimit(tb.Limit{Capacity: 10, Tokens: 1, Per: 1}); err != nil {
			t.Fatal(err)
		}
		for _, years := range []time.Duration{1, 30, 100, 140} {
			at := now.Add(-years * 365 * 24 * time.Hour)
			if err := l.Restore(maps.All(map[string]tb.State{"a": {Tokens: -5, At: at}})); err != nil {
				t.Fatal(err)
			}
			if got := tokensOf(t, l, "a"); got != 10 || l.Stats().Keys > 0 {
				t.Errorf("after %d years: %v tokens, want a full bucket", years, got)
			}
		}
	})
}

// While one limit lasts, the rate may supply more than any estimate, and pay the deepest debt.
func TestDeepestDebtIsPaidDuringOneLimit(t *testing.T) {
	now := time.Unix(1e6, 0)
	limit := tb.Limit{Capacity: tb.MaxCapacity, Tokens: 1, Per: time.Nanosecond}
	onBoth(t, &now, []tb.Limit{limit}, nil, func(t *testing.T, l both) {
		err := l.Restore(maps.All(map[string]tb.State{"a": {Tokens: -1 << 32, At: now}}))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []float64{-1 << 32, 5e9 - 1<<32, tb.MaxCapacity - 3} {
			limit.Capacity = tb.MaxCapacity - 1 - i
			if err := l.SetLimit(limit); err != nil {
				t.Fatal(err)
			}
			if got := tokensOf(t, l, "a"); got != want {
				t.Errorf("after %d changes: %v tokens, want %v", i, got, want)
			}
			now = now.Add(5 * time.Second)
		}
	})
}

// A new bucket starts when an evicted one was full, although the reading is older. Cancel of its
// first charge gives back all of it.
func TestCancelAfterAnEviction(t *testing.T) {
	now := time.Unix(0, 0)
	limit := tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}
	onBoth(t, &now, []tb.Limit{limit}, nil, func(t *testing.T, l both) {
		later := now.Add(20 * time.Second)
		for _, key := range []string{"a", "b"} {
			if d, err := l.AllowAt(later, key, 4); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
		}
		c, _ := costIn(l, 0, "c", 4)
		if d, err := c.Take(now.Add(5 * time.Second)); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		c.Cancel()
		if v, err := c.Level(later); err != nil || v.Tokens != 10 {
			t.Errorf("%+v, %v after Cancel, want 10 tokens", v, err)
		}
	}, tb.WithMaxKeys(1))
}

// Snapshot reads the clock for each state.
func TestSnapshotReadsTheClockForEachKey(t *testing.T) {
	now := time.Unix(1e6, 0)
	limit := tb.Limit{Capacity: 100, Tokens: 1, Per: time.Second}
	onBoth(t, &now, []tb.Limit{limit}, nil, func(t *testing.T, l both) {
		for _, key := range []string{"a", "b", "c"} {
			if d, _ := l.AllowN(t.Context(), key, 100); !d.Allowed {
				t.Fatal(d)
			}
		}
		states := 0
		for key, s := range l.(saver).Snapshot() {
			if !s.At.Equal(now) || s.Tokens != float64(states) {
				t.Errorf("%s: %v tokens at %v, want %d at %v", key, s.Tokens, s.At, states, now)
			}
			states++
			now = now.Add(time.Second)
		}
		if states != 3 {
			t.Errorf("%d states, want 3", states)
		}
	})
}

// At a late reading a debt may be deeper than any that Restore accepts.
func TestSnapshotOfADeepDebtIsRestored(t *testing.T) {
	now := time.Unix(1e6, 0)
	limits := []tb.Limit{{Capacity: 1000, Tokens: 1_000_000, Per: time.Second}}
	onBoth(t, &now, limits, nil, func(t *testing.T, l both) {
		start := now
		tokensOf(t, l, "b")
		now = now.Add(2 * time.Hour) // the clock jumps ahead, and back
		if r, err := l.Reserve(t.Context(), "a", 1000); err != nil || !r.Allowed {
			t.Fatal(r.Decision, err)
		}
		if r, err := l.Reserve(t.Context(), "a", 1); err != nil || r.Delay() == 0 {
			t.Fatal(r.Decision, err)
		}
		now = start
		for key, s := range l.(saver).Snapshot() {
			if key == "a" && s.Tokens != -1<<32 {
				t.Errorf("%v tokens", s.Tokens)
			}
		}
		if err := l.Restore(l.(saver).Snapshot()); err != nil {
			t.Error(err)
		}
	})
}

// A bucket that is reset stays in its tier, and what was taken before can no longer be given back.
func TestResetKeepsTheTierOfAKey(t *testing.T) {
	now := time.Unix(0, 0)
	limits := []tb.Limit{
		{Capacity: 10, Tokens: 1, Per: time.Second}, {Capacity: 100, Tokens: 1, Per: time.Second},
	}
	onBoth(t, &now, limits, nil, func(t *testing.T, l both) {
		c, err := chargeIn(l, 1, "a")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if d, err := c.Take(now); err != nil || !d.Allowed {
				t.Fatalf("Take: %+v, %v", d, err)
			}
		}
		r, err := l.Reserve(t.Context(), "a", 100)
		if err != nil || !r.Allowed {
			t.Fatalf("Reserve: %+v, %v", r, err)
		}
		l.Reset("a")
		if got := tokensOf(t, l, "a"); got != 100 {
			t.Errorf("%v tokens after a reset, want the 100 of the tier", got)
		}
		if d, err := l.AllowN(t.Context(), "a", 40); err != nil || !d.Allowed {
			t.Fatalf("AllowN: %+v, %v", d, err)
		}
		r.Cancel()
		c.Cancel()
		if got := tokensOf(t, l, "a"); got != 60 {
			t.Errorf("%v tokens after Cancel of earlier grants, want 60", got)
		}
		if n := l.Stats().Keys; n != 1 {
			t.Errorf("%d keys, want 1", n)
		}
	})
}
