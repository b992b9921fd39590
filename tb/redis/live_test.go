package redis

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed-181794aa/ratelimit/internal/redistest"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/mutex"
)

var liveDecisions = flag.Int("live", 50_000,
	"decisions by a server's clock that are compared with tb/mutex")

// TestLiveServerDecidesAsMutex makes calls on a server that reads its own clock and expires its
// keys, many of them within a millisecond. Each decision and level must be the one of tb/mutex at
// the time that the server has read: of grants, reservations, settled and undone costs and changes
// of the limit, also of the first call after a key has expired.
func TestLiveServerDecidesAsMutex(t *testing.T) {
	want := int64(*liveDecisions)
	if testing.Short() {
		want = min(want, 20_000)
	}
	c := dial(t, redistest.Start(t))
	const keys = 64
	var sum liveTally
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 16))
			b, err := newLiveBucket(t, rng, c, strconv.Itoa(i))
			for round := 1; err == nil && sum.decisions.Load() < want && !t.Failed(); round++ {
				if err = b.step(t.Context(), rng, &sum); err == nil && round%16 == 0 {
					err = b.end(t.Context(), &sum)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := sum.decisions.Load()
	t.Logf("%d decisions: %d refused, %d waiting, %d settled, %d undone, %d converted; "+
		"%d times a full bucket, %d times its key expired first", n, sum.refused.Load(),
		sum.waiting.Load(), sum.settled.Load(), sum.undone.Load(), sum.converted.Load(),
		sum.full.Load(), sum.expired.Load())
	for _, rare := range []bool{
		sum.refused.Load() < n/10, sum.waiting.Load() < n/100, sum.settled.Load() < n/100,
		sum.undone.Load() < n/100, sum.converted.Load() < n/100, sum.full.Load() < n/100,
		sum.expired.Load() < n/1000,
	} {
		if rare {
			t.Error("some kind of decision is rare")
		}
	}
}

type liveTally struct {
	decisions, refused, waiting, settled, undone, converted, full, expired atomic.Int64
}

// liveBucket is a bucket on a server that reads its own clock, and the same bucket of tb/mutex.
type liveBucket struct {
	l      *Limiter
	key    string
	tiers  []*layout
	fill   time.Duration // at the rate of the slowest tier
	slow   bool          // it is not full again before the next call
	oracle *mutex.Limiter[string]
	now    time.Time // of the oracle
	tier   int
	owed   bool        // the last grant has put the bucket in debt
	open   []liveGrant // that are not settled or undone

	converted bool // since the last reset, so that the key may stay longer
}

type liveGrant struct {
	tier   int
	tokens int
	before state
	charge *mutex.Charge[string]
}

func newLiveBucket(
	t *testing.T, rng *rand.Rand, c rueidis.Client, key string,
) (*liveBucket, error) {
	b := &liveBucket{key: key, slow: rng.IntN(2) == 0}
	var limits []tb.Limit
	for range 3 { // of one scale, because a debt is kept up to 2³² units
		limit := tb.Limit{Capacity: 1 + rng.IntN(80), Tokens: 1 + rng.Int64N(100)}
		fill := time.Duration(1e5 + rng.Float64()*1e7) // 0.1 to 10 ms
		if b.slow {
			fill += 10 * time.Second
		}
		limit.Per = time.Duration(limit.Tokens) * fill / time.Duration(limit.Capacity)
		limits, b.fill = append(limits, limit), max(b.fill, fill)
	}
	b.l = newLimiter(t, c, limits[0])
	for _, limit := range limits {
		l, err := b.l.Tier(limit)
		if err != nil {
			return nil, err
		}
		b.tiers = append(b.tiers, l.layout.Load())
	}
	var err error
	b.oracle, err = mutex.NewTiered[string](limits, tb.WithClock(func() time.Time {
		return b.now
	}))
	if err == nil {
		_, err = b.oracle.AllowAt(time.Unix(0, 0), "the first reading", 1)
	}
	return b, err
}

func (b *liveBucket) charge(tier, tokens int) *mutex.Charge[string] {
	c, err := b.oracle.ChargeIn(tier, "a", float64(tokens))
	if err != nil {
		panic(err)
	}
	return &c
}

// level returns the level of the oracle.
func (b *liveBucket) level(tier int) tb.Level {
	v, _ := b.charge(tier, 1).Level(b.now)
	return v
}

// exec makes items happen, and sets the clock of the oracle.
func (b *liveBucket) exec(ctx context.Context, tier int, items ...item) (state, error) {
	s, err := b.l.call(ctx, b.tiers[tier], b.key, items...)
	b.now = time.UnixMicro(int64(s.now))
	return s, err
}

// step makes a call of a random kind.
func (b *liveBucket) step(ctx context.Context, rng *rand.Rand, sum *liveTally) error {
	kind := rng.IntN(8)
	if kind < 5 || len(b.open) == 0 {
		tier := b.tier
		if rng.IntN(6) == 0 {
			tier = rng.IntN(len(b.tiers))
		}
		return b.take(ctx, rng, tier, sum)
	}
	i := rng.IntN(len(b.open))
	g := b.open[i]
	b.open = slices.Delete(b.open, i, i+1)
	if kind == 5 {
		sum.undone.Add(1)
		m := b.tiers[g.tier]
		it := undoOf(g.before, m.unitsOf(float64(g.tokens)))
		s, err := b.exec(ctx, g.tier, it)
		g.charge.Cancel()
		// If settled tokens have made up for a later reservation, the bucket is as it was before both,
		// and the undo of the later one finds a clock that was set back: see DESIGN.md.
		m.apply(&s, &it)
		b.open = slices.DeleteFunc(b.open, func(g liveGrant) bool { return g.before.time > s.was })
		return err
	}
	sum.settled.Add(1)
	m, actual := b.tiers[b.tier], rng.IntN(2*g.tokens)
	it := m.settlement(float64(g.tokens), float64(actual))
	s, err := b.exec(ctx, b.tier, it)
	if err != nil {
		return err
	}
	before := b.level(b.tier)
	if err := g.charge.Settle(float64(actual)); err != nil {
		return err
	}
	after := b.level(b.tier)
	if got := m.level(&s, 0); got != before {
		return fmt.Errorf("%+v at %d µs: level %+v, tb/mutex has %+v", m.limit, s.now, got, before)
	}
	m.apply(&s, &it)
	if got := m.level(&s, 0); got != after {
		return fmt.Errorf("%+v at %d µs, %+v: level %+v, tb/mutex has %+v",
			m.limit, s.now, it, got, after)
	}
	if b.owed && before.Tokens >= 0 {
		b.open = nil // in tb/mutex, the own time is the slot that has passed
	}
	b.owed = after.Tokens < 0
	return nil
}

// take takes or reserves tokens several times, by one command.
func (b *liveBucket) take(ctx context.Context, rng *rand.Rand, tier int, sum *liveTally) error {
	m := b.tiers[tier]
	items, tokens := make([]item, 1+rng.IntN(3)), make([]int, 3)
	for i := range items {
		tokens[i] = 1 + rng.IntN(m.limit.Capacity)
		items[i] = item{units: m.unitsOf(float64(tokens[i]))}
		if rng.IntN(3) == 0 {
			within := time.Duration(rng.Int64N(3 * int64(b.fill)))
			items[i] = reservation(items[i].units, deepest, within)
		}
	}
	s, err := b.exec(ctx, tier, items...)
	if err != nil {
		return err
	}
	if tier != b.tier {
		if b.level(b.tier).Full == 0 { // in Redis it may have no key
			return b.reset(ctx)
		}
		b.tier, b.converted = tier, true
		sum.converted.Add(1)
	}
	if got, want := m.level(&s, 0), b.level(tier); got != want {
		return fmt.Errorf("%+v at %d µs: level %+v, tb/mutex has %+v", m.limit, s.now, got, want)
	}
	if s.deficit == 0 {
		sum.full.Add(1)
	}
	for i, it := range items {
		g := liveGrant{tier, tokens[i], s, b.charge(tier, tokens[i])}
		g.charge.MayWait(it.within)
		want, _ := g.charge.Take(b.now)
		got := m.apply(&s, &it)
		sum.decisions.Add(1)
		switch {
		case got.Decision != want || want.Allowed && got.delay != g.charge.Delay():
			return fmt.Errorf("%+v at %d µs, %+v: %+v, tb/mutex has %+v and delay %v",
				m.limit, s.now, it, got, want, g.charge.Delay())
		case !want.Allowed:
			sum.refused.Add(1)
			continue
		case got.delay > 0:
			sum.waiting.Add(1)
		}
		b.open, b.owed = append(b.open, g), b.level(tier).Tokens < 0
	}
	return nil
}

// reset fills both buckets.
func (b *liveBucket) reset(ctx context.Context) error {
	_, err := b.exec(ctx, b.tier, item{kind: kindReset})
	b.oracle.Forget("a")
	b.open, b.owed, b.converted = nil, false, false
	return err
}

// end waits until the key has expired, or resets a bucket whose key may stay longer.
func (b *liveBucket) end(ctx context.Context, sum *liveTally) error {
	if b.converted || b.slow {
		return b.reset(ctx)
	}
	sum.expired.Add(1)
	expiry := b.now.Add(b.level(b.tier).Full + 2*time.Millisecond)
	return awaitExpiry(ctx, b.l.client, "tb:{"+b.key+"}", expiry)
}

// awaitExpiry returns when key does not exist anymore. It is an error if it exists at expiry, by
// the clock of the server.
func awaitExpiry(ctx context.Context, c rueidis.Client, key string, expiry time.Time) error {
	for {
		now, err := c.Do(ctx, c.B().Time().Build()).AsIntSlice() // seconds, and microseconds
		if err != nil {
			return err
		}
		n, err := c.Do(ctx, c.B().Exists().Key(key).Build()).AsInt64()
		if err != nil || n == 0 {
			return err
		}
		if time.Unix(now[0], now[1]*1000).After(expiry) {
			return fmt.Errorf("%s has not expired at %v", key, expiry)
		}
	}
}
