package cas

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// TestRefundWithRandomStates compares what a bucket has after a refund with integers of any size.
// Its base is anywhere, or just before the lower 64 bits of S are 0.
func TestRefundWithRandomStates(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	number := func() uint64 { return rng.Uint64() >> rng.IntN(64) }
	for range 20_000 {
		m := newLayout(anyLimit(number(), number(), number()))
		base := number()
		if m.blockBits > 0 && rng.IntN(2) == 0 {
			base = max(base>>(64-m.blockBits), 1)<<(64-m.blockBits) - number()>>60
		}
		delta, deficit := number()>>(m.deficitBits+1), number()%(m.capacity+1)
		if rng.IntN(2) == 0 {
			deficit = m.capacity + 1
		}
		word := m.pack(delta, deficit)
		own := wide(m.unitsAfter(base, delta))
		ahead := number() >> (m.deficitBits + 1)
		now := m.positionOf(m.unitsAfter(base, ahead))
		units := number() % (2 * m.capacity)
		if _, lo := m.unitsAfter(base, delta+1); lo < 2*m.capacity && rng.IntN(2) == 0 {
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
		b := m.refund(base, word, units, now)
		got := exactState{wide(m.unitsAfter(b.blocks, b.rest)), new(big.Int).SetUint64(b.deficit)}
		if got.String() != want.String() {
			t.Fatalf("%+v: %d units to base %d, delta %d, deficit %d, %d units later: %v, want %v",
				m.limit, units, base, delta, deficit, ahead, got, want)
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
	slot, _ := m.supply.timeOf(m.unitsAfter(c.base, greatest+1))
	f.now = time.Duration(slot - f.clock.firstInstant)
	if err := r.Settle(7); err != nil {
		t.Fatal(err)
	}
	f.refused("a", 4)
	f.now -= time.Hour
	f.granted("a", 3)
	f.refused("a", 1)
}
