package cas

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/internal/unit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// capacities returns the ends of the range, and capacities around the powers at which the scale
// or the width of the deficit changes.
func capacities() []int {
	cs := []int{1, 2, 3, tb.MaxCapacity - 1, tb.MaxCapacity}
	for c := 8; c < tb.MaxCapacity; c *= 2 {
		cs = append(cs, c-1, c, c+1)
	}
	for c := 10; c < tb.MaxCapacity; c *= 10 {
		cs = append(cs, c, 1+unit.Least/c, 2+unit.Least/c)
	}
	return cs
}

func TestQuantumIsWithinTheContract(t *testing.T) {
	for _, c := range capacities() {
		m := newLayout(tb.Limit{Capacity: c, Tokens: 1, Per: time.Second}, 0, 0)
		quantum := big.NewRat(1, int64(m.scale))
		coarsest := big.NewRat(int64(c), 1<<23)
		if coarsest.Cmp(big.NewRat(1, 1_000_000)) < 0 {
			coarsest = big.NewRat(1, 1_000_000)
		}
		if quantum.Cmp(coarsest) > 0 {
			t.Errorf("capacity %d: quantum %v, want at most %v", c, quantum, coarsest)
		}
	}
}

func TestWordHoldsTheCapacityAndManyFillTimes(t *testing.T) {
	for _, c := range capacities() {
		m := newLayout(tb.Limit{Capacity: c, Tokens: 1, Per: time.Second}, 0, 0)
		last := uint64(1)<<(63-m.deficitBits) - 1
		if m.deficitMask < 2*m.capacity-1 {
			t.Errorf("capacity %d: the deficit holds %d units, want twice %d", c, m.deficitMask, m.capacity)
		}
		if !m.fits(last) || m.fits(last+1) || m.fits(1<<63) {
			t.Errorf("capacity %d: %d is not the last delta", c, last)
		}
		if fills := last / m.capacity; fills < 3 || c <= 100_000_000 && fills < 250 {
			t.Errorf("capacity %d: a delta of only %d fill times", c, fills)
		}
		for _, deficit := range []uint64{0, 1, m.capacity, 2*m.capacity - 2} {
			for _, delta := range []uint64{0, 1, last} {
				w := m.pack(delta, deficit)
				if d, f := m.unpack(w); d != delta || f != deficit || isSealed(w) {
					t.Errorf("capacity %d: unpack(pack(%d, %d)) = %d, %d", c, delta, deficit, d, f)
				}
			}
			for _, delta := range []uint64{0, last} {
				w := m.pack(delta, deficit) | sealBit
				if d, f := m.unpack(w &^ sealBit); d != delta || f != deficit || !isSealed(w) || w == evicted {
					t.Errorf("capacity %d: deficit %d: the sealed word is %x", c, deficit, w)
				}
			}
		}
	}
}

func TestTokensInDividesExactly(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, c := range capacities() {
		m := newLayout(tb.Limit{Capacity: c, Tokens: 1, Per: time.Second}, 0, 0)
		for range 200 {
			units := rng.Uint64N(m.capacity + 1)
			whole := units / m.scale * m.scale
			for _, u := range []uint64{units, whole, max(whole, 1) - 1, m.capacity} {
				if got := m.tokensIn(u); got != int(u/m.scale) {
					t.Fatalf("capacity %d: %d units are %d tokens, want %d", c, u, got, u/m.scale)
				}
			}
		}
	}
}

func TestStepRefillsAndCharges(t *testing.T) {
	m := newLayout(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}, 0, 0)
	unit := m.scale
	for _, tt := range []struct {
		name                   string
		delta, deficit         uint64
		elapsed, cost          uint64
		wantDelta, wantDeficit uint64
		granted                bool
	}{
		{"full, same time", 5, 0, 5, unit, 5, unit, true},
		{"the last token", 5, 9 * unit, 5, unit, 5, 10 * unit, true},
		{"one unit short", 5, 9*unit + 1, 5, unit, 5, 10*unit + 1, false},
		{"refilled just in time", 5, 10 * unit, 5 + unit, unit, 5 + unit, 10 * unit, true},
		{"a unit too early", 5, 10 * unit, 4 + unit, unit, 4 + unit, 10*unit + 1, false},
		{"not past full", 5, 3 * unit, 5 + 100*unit, unit, 5 + 100*unit, unit, true},
		{"late: time stays", 5, 3 * unit, 4, unit, 5, 4 * unit, true},
		{"late: nothing refilled", 50 * unit, 10 * unit, 0, unit, 50 * unit, 11 * unit, false},
		{"the whole capacity", 5, 0, 5, 10 * unit, 5, 10 * unit, true},
		{"more than the capacity", 5, 0, 5, 10*unit + 1, 5, 10*unit + 1, false},
	} {
		delta, deficit, granted := m.step(m.pack(tt.delta, tt.deficit), tt.elapsed, tt.cost)
		if delta != tt.wantDelta || deficit != tt.wantDeficit || granted != tt.granted {
			t.Errorf("%s: %d, %d, %v; want %d, %d, %v", tt.name,
				delta, deficit, granted, tt.wantDelta, tt.wantDeficit, tt.granted)
		}
	}
}

func TestDecimalCostsAreRoundedUp(t *testing.T) {
	for _, tt := range []struct {
		capacity int
		cost     float64
		units    uint64
	}{
		{1, 0.1, 100_000}, {1, 0.7, 700_000}, {1, 1e-6, 1}, {1, 1e-7, 1}, {1, 1e-300, 1},
		{1, 0.3333333, 333_334}, {1, 1, 1_000_000}, {1, 1.1, 1_000_001}, {1, 5e-324, 1},
		{100_000, 0.07, 7}, {100_000, 0.29, 29}, {100_000, 0.57, 57}, {100_000, 1.15, 115},
		{100_000, 0.070000001, 8}, {1 << 30, 0.5, 1}, {1 << 30, 1 << 30, 1 << 30},
		{1<<23 - 1, 0.1, 1}, {1<<23 - 1, 1, 10}, {1 << 23, 0.1, 1}, {1 << 23, 1, 1},
	} {
		m := newLayout(tb.Limit{Capacity: tt.capacity, Tokens: 1, Per: 1}, 0, 0)
		if got := m.unitsOf(tt.cost); got != tt.units {
			t.Errorf("capacity %d: cost %v is %d units, want %d",
				tt.capacity, tt.cost, got, tt.units)
		}
	}
}

// A decimal cost that is a whole number of units is not rounded.
func TestDecimalCostsAreExact(t *testing.T) {
	m := newLayout(tb.Limit{Capacity: 8, Tokens: 1, Per: 1}, 0, 0)
	for units := uint64(1); units <= m.capacity; units += 7 {
		cost, _ := new(big.Rat).SetFrac64(int64(units), int64(m.scale)).Float64()
		if got := m.unitsOf(cost); got != units {
			t.Fatalf("%v tokens are %d units, want %d", cost, got, units)
		}
	}
}

func TestLayout(t *testing.T) {
	if size := unsafe.Sizeof(cell{}); size != 16 {
		t.Errorf("a cell takes %d bytes, want 16", size)
	}
	if evicted != math.MaxUint64 {
		t.Errorf("evicted is %x, want the largest word", evicted)
	}
}
