package cas_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

// A caller that keeps the charges and their slices allocates nothing for a call on several
// buckets: granted, refused, or undone.
func TestChargesAllocateNothing(t *testing.T) {
	type user struct {
		tenant string
		id     int
	}
	generous := tb.Limit{Capacity: 1 << 30, Tokens: 1000, Per: time.Second}
	users, err := cas.New[user](generous)
	if err != nil {
		t.Fatal(err)
	}
	tenants, err := cas.New[string](generous)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		limit   tb.Limit
		granted bool
	}{
		{"granted", generous, true},
		{"refused", tb.Limit{Capacity: 1, Tokens: 1, Per: 24 * time.Hour}, false},
	} {
		bucket, err := cas.NewBucket(tt.limit)
		if err != nil {
			t.Fatal(err)
		}
		var kept struct {
			user      cas.Charge[user]
			tenant    cas.Charge[string]
			all       cas.BucketCharge
			charges   [3]tb.Charge
			decisions [3]tb.Decision
		}
		kept.charges = [...]tb.Charge{&kept.user, &kept.tenant, &kept.all}
		take := func() bool {
			kept.user, _ = users.Charge(user{"acme", 7}, 1)
			kept.tenant, _ = tenants.Charge("acme", 0.5)
			kept.all, _ = bucket.Charge(1)
			_, allowed, err := tb.TakeAll(time.Now(), kept.charges[:], kept.decisions[:])
			if err != nil {
				t.Fatal(err)
			}
			return allowed
		}
		take() // adds the keys
		if n := testing.AllocsPerRun(100, func() {
			if take() != tt.granted {
				t.Fatalf("%s: %+v", tt.name, kept.decisions)
			}
		}); n != 0 {
			t.Errorf("%s: TakeAll allocates %v times, want 0", tt.name, n)
		}
		if n := testing.AllocsPerRun(100, func() {
			kept.user.Take(time.Now())
			kept.user.Cancel()
			kept.all.Take(time.Now())
			kept.all.Cancel()
		}); n != 0 {
			t.Errorf("%s: Cancel allocates %v times, want 0", tt.name, n)
		}
	}
}

// A bucket and a key with the same limit get the same charges: some wait, some are undone or
// settled, some are taken again. A delta of the limit lasts half a minute, so many charges move
// their bucket. The limit changes, and charges of an earlier limit are taken again.
func TestBucketChargesAsTheLimiterDoes(t *testing.T) {
	now := time.Unix(0, 0)
	clock := tb.WithClock(func() time.Time { return now })
	limit := tb.Limit{Capacity: 10, Tokens: 1, Per: 100}
	b, err := cas.NewBucket(limit, clock)
	if err != nil {
		t.Fatal(err)
	}
	l, err := cas.New[string](limit, clock)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	waits := 0
	var ofBucket cas.BucketCharge
	var ofKey cas.Charge[string]
	for i := range 20_000 {
		if i == 0 || rng.IntN(10) > 0 {
			cost := float64(1+rng.IntN(240)) / 20 // some are above the capacity
			ofBucket, _ = b.Charge(cost)
			ofKey, _ = l.Charge("a", cost)
		}
		if rng.IntN(2) == 0 {
			within := max(0, time.Duration(rng.IntN(1200)-100))
			ofBucket.MayWait(within)
			ofKey.MayWait(within)
		}
		if i > 0 && rng.IntN(200) == 0 {
			limit.Capacity, limit.Tokens = 10+10*rng.IntN(2)*rng.IntN(50), 1+rng.Int64N(2)
			if err1, err2 := b.SetLimit(limit), l.SetLimit(limit); err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
		}
		check, _ := ofBucket.Peek(now)
		if want, _ := ofKey.Peek(now); check != want {
			t.Fatalf("call %d: Peek = %+v, want %+v", i, check, want)
		}
		got, _ := ofBucket.Take(now)
		if want, _ := ofKey.Take(now); got != want || got != check {
			t.Fatalf("call %d: Take = %+v after Peek = %+v, want %+v", i, got, check, want)
		}
		if got, want := ofBucket.Delay(), ofKey.Delay(); got != want {
			t.Fatalf("call %d: Delay = %v, want %v", i, got, want)
		} else if got > 0 {
			waits++
		}
		if rng.IntN(3) == 0 {
			now = now.Add(time.Duration(rng.IntN(1000)))
		}
		switch rng.IntN(4) {
		case 0:
			ofBucket.Cancel()
			ofKey.Cancel()
		case 1:
			actual := float64(rng.IntN(15))
			if err1, err2 := ofBucket.Settle(actual), ofKey.Settle(actual); err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
		}
		if rng.IntN(50) == 0 { // some are late
			now = now.Add(time.Duration(rng.IntN(90)-30) * time.Second)
		}
		ofOneN, _ := b.AllowN(0.1)
		if want, _ := l.AllowN(t.Context(), "a", 0.1); ofOneN != want {
			t.Fatalf("call %d: AllowN = %+v, want %+v", i, ofOneN, want)
		}
		ofOne := b.Level()
		if want, _ := l.Level(t.Context(), "a"); ofOne != want {
			t.Fatalf("call %d: Level = %+v, want %+v", i, ofOne, want)
		}
	}
	if waits < 500 {
		t.Errorf("%d charges wait, want at least 500", waits)
	}
}

// A charge that may wait would leave the deepest debt, to the unit, at an instant within a unit. It
// is refused for its delay alone.
func TestChargeIntoTheDeepestDebt(t *testing.T) {
	type charge interface {
		tb.Charge
		MayWait(time.Duration)
	}
	start := time.Unix(0, 0)
	clock := tb.WithClock(func() time.Time { return start })
	const capacity = 1 << 20 // a unit is a tenth of a token
	c, m := cas.NewTokenBucket(capacity, 1, clock), mutex.NewTokenBucket(capacity, 1, clock)
	for name, newCharge := range map[string]func(cost float64) (charge, error){
		"cas":   func(cost float64) (charge, error) { c, err := c.Charge("a", cost); return &c, err },
		"mutex": func(cost float64) (charge, error) { c, err := m.Charge("a", cost); return &c, err },
	} {
		take := func(at time.Time, cost float64, within time.Duration) tb.Decision {
			t.Helper()
			c, err := newCharge(cost)
			if err != nil {
				t.Fatal(err)
			}
			c.MayWait(within)
			d, err := c.Take(at)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		take(start, capacity, tb.Never) // the first reading
		const halfAUnit = 50 * time.Millisecond
		now := start.Add(halfAUnit)
		take(now, 0.1, tb.Never)
		for range 1<<11 - 1 {
			if d := take(now, capacity, tb.Never); !d.Allowed {
				t.Fatalf("%s: %+v, want granted", name, d)
			}
		}
		const delay = 1<<31*time.Second - halfAUnit
		want := tb.Decision{RetryAfter: delay - time.Second}
		if d := take(now, capacity-0.1, time.Second); d != want {
			t.Errorf("%s: %+v, want %+v", name, d, want)
		}
		want = tb.Decision{RetryAfter: halfAUnit}
		if d := take(now, capacity, tb.Never); d != want {
			t.Errorf("%s: a unit deeper: %+v, want %+v", name, d, want)
		}
		if d := take(now, capacity-0.1, delay); !d.Allowed {
			t.Errorf("%s: %+v, want granted", name, d)
		}
	}
}

// A charge empties the bucket, or puts it into debt. A later grant has the supply since then, or
// since the slot. Cancel gives back the rest of the cost, to the unit.
func TestCancelGivesBackTheCostLessTheSupply(t *testing.T) {
	type charge interface {
		tb.Charge
		MayWait(time.Duration)
	}
	start := time.Unix(0, 0)
	now := start
	clock := tb.WithClock(func() time.Time { return now })
	c, m := cas.NewTokenBucket(10, 1, clock), mutex.NewTokenBucket(10, 1, clock)
	for name, l := range map[string]struct {
		both
		charge func(key string, cost float64) (charge, error)
	}{
		"cas": {c, func(key string, cost float64) (charge, error) {
			c, err := c.Charge(key, cost)
			return &c, err
		}},
		"mutex": {m, func(key string, cost float64) (charge, error) {
			c, err := m.Charge(key, cost)
			return &c, err
		}},
	} {
		for _, tt := range []struct {
			key         string
			first, cost float64 // taken at the start
			later       time.Duration
			left        float64 // after a grant of one token, and Cancel
		}{
			{"emptied", 0, 10, 3 * time.Second, 9},
			{"in debt until 8 s", 10, 8, 9 * time.Second, 7},
		} {
			now = start
			if tt.first > 0 {
				if d, _ := l.AllowN(t.Context(), tt.key, tt.first); !d.Allowed {
					t.Fatalf("%s: %+v", name, d)
				}
			}
			undone, err := l.charge(tt.key, tt.cost)
			if err != nil {
				t.Fatal(err)
			}
			undone.MayWait(tb.Never)
			if d, err := undone.Take(now); err != nil || !d.Allowed {
				t.Fatalf("%s, %s: %+v, %v", name, tt.key, d, err)
			}
			now = start.Add(tt.later)
			if d, _ := l.Allow(t.Context(), tt.key); !d.Allowed {
				t.Fatalf("%s, %s: %+v", name, tt.key, d)
			}
			undone.Cancel()
			if left := tokensOf(t, l, tt.key); left != tt.left {
				t.Errorf("%s, %s: %v tokens, want %v", name, tt.key, left, tt.left)
			}
		}
	}
}
