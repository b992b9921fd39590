package cas

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// anyLimit makes a limit in the valid range from any three numbers.
func anyLimit(capacity, tokens, per uint64) tb.Limit {
	per = 1 + per%math.MaxInt64
	return tb.Limit{
		Capacity: 1 + int(capacity%tb.MaxCapacity),
		Tokens:   1 + int64(tokens%per),
		Per:      time.Duration(per),
	}
}

// FuzzSupply compares S and its inverse with exact divisions, at an instant and around the last
// multiple of the period before it.
func FuzzSupply(f *testing.F) {
	for _, l := range edgeLimits {
		for _, t := range []uint64{0, 1, 1_000_000_007, math.MaxInt64, math.MaxUint64} {
			f.Add(uint64(l.Capacity-1), uint64(l.Tokens-1), uint64(l.Per-1), t)
		}
	}
	f.Fuzz(func(t *testing.T, capacity, tokens, per, instant uint64) {
		l := anyLimit(capacity, tokens, per)
		m := newLayout(l, 0, firstInstant(l))
		period := instant / uint64(l.Per) * uint64(l.Per)
		for _, at := range []uint64{instant, period - 1, period, period + 1} {
			want := supplyAt(l, m.scale, at)
			if got := m.supply.at(at).integer(); got.Cmp(want) != 0 {
				t.Fatalf("limit %+v: S(%d) = %v, want %v", l, at, got, want)
			}
			checkWide(t, wideOf(want), instant)
			for d := int64(-1); d <= 1; d++ {
				checkTimeOf(t, l, m, new(big.Int).Add(want, big.NewInt(d)))
			}
			for _, ns := range []uint64{1, 1 << 10, 1 << 20} { // may be beyond the last instant
				later := new(big.Int).SetUint64(ns * max(1, m.supply.rate.whole))
				checkTimeOf(t, l, m, later.Add(later, want))
			}
			checkTimeOf(t, l, m, new(big.Int).Lsh(want, 1))
		}
	})
}

// checkWide compares sums, differences and bases with integers of any size.
func checkWide(t *testing.T, x wide, n uint64) {
	t.Helper()
	units := new(big.Int).SetUint64(n)
	sum := new(big.Int).Add(x.integer(), units)
	y := x.plus(n)
	if y.integer().Cmp(sum) != 0 || y.minus(n) != x || x.before(y) != (n > 0) || y.before(x) {
		t.Fatalf("%v plus %d is %v", x, n, y)
	}
	if y.after(x) != n || n > 0 && x.after(y) != 0 {
		t.Fatalf("%v is %d after %v, want %d", y, y.after(x), x, n)
	}
	if far := (wide{x.hi + 1, x.lo}); far.after(x) != math.MaxUint64 || x.after(far) != 0 {
		t.Fatalf("%v is %d after %v", far, far.after(x), x)
	}
	base := blockOf(x)
	if rest := x.after(startOf(base)); rest >= 1<<blockBits || startOf(base).plus(rest) != x {
		t.Fatalf("%v has base %d and %d units", x, base, rest)
	}
}

// checkTimeOf checks that timeOf returns the first instant at which S is at least x.
func checkTimeOf(t *testing.T, l tb.Limit, m *layout, x *big.Int) {
	if x.Sign() <= 0 {
		return
	}
	got := m.supply.timeOf(wideOf(x))
	if x.Cmp(supplyAt(l, m.scale, math.MaxUint64)) > 0 {
		if got != math.MaxUint64 {
			t.Fatalf("limit %+v: timeOf(%v) = %d, want the end of time", l, x, got)
		}
	} else if supplyAt(l, m.scale, got).Cmp(x) < 0 || supplyAt(l, m.scale, got-1).Cmp(x) >= 0 {
		t.Fatalf("limit %+v: S reaches %v at %d, which is not the first", l, x, got)
	}
}

// FuzzWord compares take, giveBack and successor with arithmetic in big integers.
func FuzzWord(f *testing.F) {
	for _, seed := range [][7]uint64{
		{9, 0, 1e9 - 1, 0, 0, 1 << 62, 1e9},
		{1<<30 - 1, 1e6, 1e6, 1 << 33, 1 << 31, 0, 1},
		{0, 0, math.MaxInt64 - 1, 7, 3, 1 << 63, 2},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4], seed[5], seed[6])
	}
	f.Fuzz(func(t *testing.T, capacity, tokens, per, anyDelta, anyDeficit, now, anyCost uint64) {
		l := anyLimit(capacity, tokens, per)
		m := newLayout(l, 0, firstInstant(l))
		delta := anyDelta & (1<<(63-m.deficitBits) - 1)
		deficit := anyDeficit % (m.capacity + 1)
		cost := 1 + anyCost%m.capacity

		word := m.pack(delta, deficit)
		if d, f := m.unpack(word); d != delta || f != deficit || isSealed(word) || !m.fits(delta) {
			t.Fatalf("limit %+v: unpack(pack(%d, %d)) = %d, %d", l, delta, deficit, d, f)
		}
		var c cell
		base := blockOf(m.supply.at(firstInstant(l)))
		c.init(content{m.owner, base, word})

		// The bucket's time, in supply, becomes S(now) if that is later. The deficit shrinks by
		// the supply in between, to 0 at most. A grant adds the cost.
		origin := startOf(base).integer()
		before := new(big.Int).Add(origin, new(big.Int).SetUint64(delta))
		ownTime := supplyAt(l, m.scale, now)
		if ownTime.Cmp(before) < 0 {
			ownTime = before
		}
		gain := new(big.Int).Sub(ownTime, before)
		refilled := new(big.Int).Sub(new(big.Int).SetUint64(deficit), gain)
		if refilled.Sign() < 0 {
			refilled.SetUint64(0)
		}
		charged := new(big.Int).Add(refilled, new(big.Int).SetUint64(cost))
		granted := charged.Cmp(new(big.Int).SetUint64(m.capacity)) <= 0
		fits := new(big.Int).Sub(ownTime, origin).BitLen() <= int(63-m.deficitBits)

		d, _, _, ok := c.take(m, now, cost)
		switch stored := c.word.Load(); {
		case granted && !fits:
			if ok || stored != word {
				t.Fatalf("limit %+v: %+v, word %x, want no decision", l, d, stored)
			}
		case !ok || d.Allowed != granted:
			t.Fatalf("limit %+v: %+v, %t, want granted %t", l, d, ok, granted)
		case !granted:
			checkRefusal(t, l, m, d, now, ownTime, refilled, cost)
		default:
			checkGrant(t, l, m, d, stored, new(big.Int).Sub(ownTime, origin), charged)
			receipt{&c, m, word, stored}.giveBack(float64(cost) / float64(m.scale))
			if got := m.balanceOf(c.base, c.word.Load()).time.integer(); got.Cmp(ownTime) != 0 ||
				c.word.Load()&m.deficitMask != refilled.Uint64() {
				t.Fatalf("limit %+v: after giveBack the word is %x, want the deficit %v at %v",
					l, c.word.Load(), refilled, ownTime)
			}
		}
		if granted {
			checkSuccessor(t, l, m, &c, now, cost, ownTime, charged)
		}
	})
}

// checkGrant checks the decision of a grant and the word that it stored.
func checkGrant(
	t *testing.T, l tb.Limit, m *layout, d tb.Decision, word uint64, wantDelta, wantDeficit *big.Int,
) {
	delta, deficit := m.unpack(word)
	if delta != wantDelta.Uint64() || deficit != wantDeficit.Uint64() {
		t.Fatalf("limit %+v: stored %d, %d, want %v, %v", l, delta, deficit, wantDelta, wantDeficit)
	}
	if want := (m.capacity - wantDeficit.Uint64()) / m.scale; d.Remaining != int(want) {
		t.Fatalf("limit %+v: %d remaining, want %d", l, d.Remaining, want)
	}
}

// checkRefusal checks the decision of a refusal at now, by a bucket with the given time in supply
// and the given deficit.
func checkRefusal(
	t *testing.T, l tb.Limit, m *layout, d tb.Decision, now uint64,
	ownTime, deficit *big.Int, cost uint64,
) {
	if want := (m.capacity - deficit.Uint64()) / m.scale; d.Remaining != int(want) {
		t.Fatalf("limit %+v: %d remaining, want %d", l, d.Remaining, want)
	}
	if d.RetryAfter == tb.Never {
		return
	}
	// The missing units are supplied at the end of the wait, and not before.
	missing := deficit.Uint64() + cost - m.capacity
	x := new(big.Int).Add(ownTime, new(big.Int).SetUint64(missing))
	then := now + uint64(d.RetryAfter)
	if supplyAt(l, m.scale, then).Cmp(x) < 0 || supplyAt(l, m.scale, then-1).Cmp(x) >= 0 {
		t.Fatalf("limit %+v: wait %d from %d for %d units is not exact",
			l, d.RetryAfter, now, missing)
	}
}

// checkSuccessor seals c and checks that its successor, charged with cost at now, has the given
// time in supply and the given deficit.
func checkSuccessor(
	t *testing.T, l tb.Limit, m *layout, c *cell, now, cost uint64, ownTime, wantDeficit *big.Int,
) {
	c.word.Store(c.word.Load() | sealBit)
	has := m.balanceOf(c.base, c.word.Load())
	want := request{tokens: float64(cost) / float64(m.scale)}
	after, call := want.decide(m, has, now)
	base, r := m.successor(has, after, now)
	if isSealed(r.after) || !call.Allowed {
		t.Fatalf("limit %+v: successor's word %x, granted %t, want a grant", l, r.after, call.Allowed)
	}
	got := m.balanceOf(base, r.after)
	if got.time.integer().Cmp(ownTime) != 0 || got.deficit != wantDeficit.Uint64() {
		t.Fatalf("limit %+v: the successor has %+v, want %v and %v", l, got, ownTime, wantDeficit)
	}
}
