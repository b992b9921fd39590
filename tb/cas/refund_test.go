package cas

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// TestRefundWithRandomStates compares what a bucket has after a refund with integers of any size.
// Its time is anywhere, or just before the lower 64 bits of S are 0.
func TestRefundWithRandomStates(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	number := func() uint64 { return rng.Uint64() >> rng.IntN(64) }
	for range 20_000 {
		m := newLayout(anyLimit(number(), number(), number()), 0, 0)
		start := wide{number() >> 44, number()}
		if rng.IntN(2) == 0 {
			start.lo = -number() >> 60
		}
		delta, deficit := number()>>(m.deficitBits+1), number()%(m.capacity+1)
		if rng.IntN(2) == 0 {
			deficit = m.capacity + 1
		}
		has := balance{time: start.plus(delta), deficit: deficit}
		own := has.time.integer()
		ahead := number() >> (m.deficitBits + 1)
		now := start.plus(ahead)
		units := number() % (2 * m.capacity)
		if lo := start.plus(delta + 1).lo; lo < 2*m.capacity && rng.IntN(2) == 0 {
			units = lo // the slot moves to where they are 0
		}

		want := exactState{new(big.Int).Set(own), new(big.Int).SetUint64(deficit - min(deficit, units))}
		if deficit > m.capacity {
			debt := delta + 1 - min(delta+1, ahead)
			want.deficit.SetUint64(deficit)
			want.own.Sub(own, new(big.Int).SetUint64(units))
			if units >= debt {
				want.deficit.SetUint64(m.capacity - min(m.capacity, units-debt))
				want.own.Sub(own, new(big.Int).SetUint64(debt)).Add(want.own, big.NewInt(1))
			}
		}
		if got := stateOf(m.refund(has, units, now)); got.String() != want.String() {
			t.Fatalf("%+v: %d units to deficit %d at %d units, %d units later: %v, want %v",
				m.limit, units, deficit, delta, ahead, got, want)
		}
	}
}

// A refund that the cell can hold moves no bucket, not even at the instant at which it was made.
func TestRefundKeepsTheCell(t *testing.T) {
	f := newFixture(t)
	for i, now := range []time.Duration{0, time.Second} {
		r, err := f.Reserve(t.Context(), "a", 4)
		if err != nil || !r.Allowed {
			t.Fatalf("Reserve returned %+v, %v", r, err)
		}
		c := f.cell("a")
		f.now = now
		if err := r.Settle(3); err != nil {
			t.Fatal(err)
		}
		if f.cell("a") != c {
			t.Errorf("refund %d has moved the bucket", i+1)
		}
	}
}

// A debt has been paid, and its slot is a unit beyond the greatest delta.
func TestRefundWhereTheDeltaEnds(t *testing.T) {
	f := newFixture(t)
	r, err := f.Reserve(t.Context(), "a", 10)
	if err != nil {
		t.Fatal(err)
	}
	c, m := f.cell("a"), f.layout()
	greatest := uint64(1)<<(63-m.deficitBits) - 1
	c.word.Store(m.pack(greatest, m.capacity+1))
	slot := m.supply.timeOf(startOf(c.base).plus(greatest + 1))
	f.now = time.Duration(slot - f.clock.firstInstant)
	if err := r.Settle(7); err != nil {
		t.Fatal(err)
	}
	f.refused("a", 4)
	f.now -= time.Hour
	f.granted("a", 3)
	f.refused("a", 1)
}
