package cas

import (
	"math"
	"math/big"
	"testing"

	"github.com/seed-181794aa/ratelimit/tb"
)

// FuzzSupplyAfterChange changes the rate at an instant. It compares the supply clock of the new
// rate and its inverse with exact divisions, and with the supply of both rates without rounding.
func FuzzSupplyAfterChange(f *testing.F) {
	for i, old := range edgeLimits {
		for j, l := range edgeLimits[i:] {
			f.Add(uint64(l.Capacity-1), uint64(old.Tokens-1), uint64(old.Per-1),
				uint64(l.Tokens-1), uint64(l.Per-1), 1<<62+uint64(i), uint64(j)<<40)
		}
	}
	f.Fuzz(func(t *testing.T, capacity, tokens, per, nextTokens, nextPer, at, instant uint64) {
		l := anyLimit(capacity, tokens, per)
		next := anyLimit(capacity, nextTokens, nextPer)
		old := newLayout(l, 0, firstInstant(l))
		at %= 1 << 63
		m := changed(old, next, at)
		period := m.supply.from + instant/uint64(next.Per)*uint64(next.Per)
		for _, u := range []uint64{instant, period - 1, period, period + 1, at, at - 1, at + 1} {
			want := suppliedBy(m, u)
			if got := m.supply.at(u).integer(); got.Cmp(want) != 0 {
				t.Fatalf("%+v, then %+v at %d: S(%d) = %v, want %v", l, next, at, u, got, want)
			}
			for d := int64(-1); d <= 1; d++ {
				checkShiftedTimeOf(t, m, new(big.Int).Add(want, big.NewInt(d)))
			}
		}
		checkContinuous(t, old, m, at, max(at, instant))
	})
}

// changed returns the layout that takes the place of m, on a clock that ends with the last instant.
func changed(m *layout, l tb.Limit, at uint64) *layout {
	m.end = math.MaxUint64
	return m.change(l, max(at, m.supply.from), 0)
}

// suppliedBy returns S(u) by its definition.
func suppliedBy(m *layout, u uint64) *big.Int {
	return supplyAt(m.limit, m.scale, u-min(u, m.supply.from))
}

// checkShiftedTimeOf checks that timeOf returns the first instant, not before the change, at which
// S is at least x.
func checkShiftedTimeOf(t *testing.T, m *layout, x *big.Int) {
	t.Helper()
	if x.Sign() < 0 {
		return
	}
	got := m.supply.timeOf(wideOf(x))
	if x.Cmp(suppliedBy(m, math.MaxUint64)) > 0 {
		if got != math.MaxUint64 {
			t.Fatalf("%+v: timeOf(%v) = %d, want the end of time", m.supply, x, got)
		}
		return
	}
	first := got == m.supply.from || suppliedBy(m, got-1).Cmp(x) < 0
	if got < m.supply.from || suppliedBy(m, got).Cmp(x) < 0 || !first {
		t.Fatalf("%+v: S reaches %v at %d, which is not the first", m.supply, x, got)
	}
}

// checkContinuous checks that the tokens that n has supplied by the instant u, after m has supplied
// until at, are the exact ones less the rounding: a unit, and the supply of a nanosecond.
func checkContinuous(t *testing.T, m, n *layout, at, u uint64) {
	t.Helper()
	perNano := func(m *layout) *big.Rat {
		r := big.NewRat(m.limit.Tokens, int64(m.limit.Per))
		return r.Mul(r, big.NewRat(int64(m.scale), 1))
	}
	nanos := func(ns uint64) *big.Rat { return new(big.Rat).SetInt(new(big.Int).SetUint64(ns)) }
	exact := new(big.Rat).Mul(nanos(at-min(at, m.supply.from)), perNano(m))
	exact.Sub(exact, new(big.Rat).SetInt(supplyAt(m.limit, m.scale, at-min(at, m.supply.from))))
	// The fraction of a unit at the change:
	exact.Mul(exact, big.NewRat(int64(n.scale), int64(m.scale)))
	exact.Add(exact, new(big.Rat).Mul(nanos(u-at), perNano(n)))
	got := new(big.Int).Sub(suppliedBy(n, u), suppliedBy(n, at))
	lost := new(big.Rat).Sub(exact, new(big.Rat).SetInt(got))
	most := new(big.Rat).Add(perNano(n), big.NewRat(int64(max(n.scale/m.scale, 1)), 1))
	if lost.Sign() < 0 || lost.Cmp(most) > 0 {
		t.Fatalf("%+v, then %+v at %d: %v units by %d are %s from the exact supply",
			m.limit, n.limit, at, got, u, lost.FloatString(9))
	}
}
