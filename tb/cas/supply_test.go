package cas

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// supplyAt returns S(t) by its definition.
func supplyAt(l tb.Limit, scale, t uint64) *big.Int {
	x := new(big.Int).SetUint64(t)
	x.Mul(x, big.NewInt(l.Tokens)).Mul(x, new(big.Int).SetUint64(scale))
	return x.Quo(x, big.NewInt(int64(l.Per)))
}

// integer returns x.
func (x wide) integer() *big.Int {
	i := new(big.Int).SetUint64(x.hi)
	return i.Lsh(i, 64).Or(i, new(big.Int).SetUint64(x.lo))
}

// wideOf is the inverse of integer.
func wideOf(x *big.Int) wide {
	lo := new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64))
	return wide{new(big.Int).Rsh(x, 64).Uint64(), lo.Uint64()}
}

// edgeLimits have rates that are odd fractions, or at the ends of the range.
var edgeLimits = []tb.Limit{
	{Capacity: 1, Tokens: 1, Per: 1},
	{Capacity: 1, Tokens: 1, Per: math.MaxInt64},
	{Capacity: 1, Tokens: math.MaxInt64, Per: math.MaxInt64},
	{Capacity: 1, Tokens: math.MaxInt64 - 1, Per: math.MaxInt64},
	{Capacity: 1, Tokens: 1<<61 - 1, Per: math.MaxInt64 - 24},
	{Capacity: 1 << 30, Tokens: math.MaxInt64 - 1, Per: math.MaxInt64},
	{Capacity: 10, Tokens: 5, Per: time.Second},
	{Capacity: 1000, Tokens: 3, Per: time.Second},
	{Capacity: 1, Tokens: 1000, Per: time.Second},
	{Capacity: 1, Tokens: 999, Per: time.Second},
	{Capacity: 1, Tokens: 1001, Per: time.Second},
	{Capacity: 7, Tokens: 982_451_653, Per: 1_000_000_007},
	{Capacity: 3, Tokens: 7, Per: 86399 * time.Second},
	{Capacity: 1, Tokens: 1, Per: 3},
}

// instants returns instants at which an error in S is most likely: around multiples of the
// period, and at the ends of the range.
func instants(l tb.Limit, rng *rand.Rand) []uint64 {
	ts := []uint64{0, 1, math.MaxInt64 - 1, math.MaxInt64, 1 << 63, math.MaxUint64 - 1, math.MaxUint64}
	per := uint64(l.Per)
	for range 300 {
		t := rng.Uint64() >> rng.IntN(64)
		m := t / per * per
		ts = append(ts, t, m-1, m, m+1)
	}
	return ts
}

func TestSupplyIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, l := range edgeLimits {
		m := newLayout(l, 0, firstInstant(l))
		for _, at := range instants(l, rng) {
			want := supplyAt(l, m.scale, at)
			if got := m.supply.at(at).integer(); got.Cmp(want) != 0 {
				t.Fatalf("limit %+v: S(%d) = %v, want %v", l, at, got, want)
			}
		}
	}
}

func TestTimeOfIsTheFirstInstant(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, l := range edgeLimits {
		m := newLayout(l, 0, firstInstant(l))
		for _, at := range instants(l, rng) {
			x := supplyAt(l, m.scale, at)
			x.Add(x, big.NewInt(rng.Int64N(3)-1))
			checkTimeOf(t, l, m, x)
		}
	}
}

func TestTimeOfWithRandomLimits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 20_000 {
		per := rng.Int64() >> rng.IntN(63)
		l := tb.Limit{Capacity: 1 + rng.IntN(1<<30), Per: time.Duration(per)}
		if per < 1 {
			continue
		}
		l.Tokens = 1 + rng.Int64N(per)>>rng.IntN(63)
		m := newLayout(l, 0, firstInstant(l))
		at := rng.Uint64() >> rng.IntN(64)
		x := supplyAt(l, m.scale, at)
		checkTimeOf(t, l, m, x)
		if got := m.supply.at(at).integer(); got.Cmp(x) != 0 {
			t.Fatalf("limit %+v: S(%d) = %v, want %v", l, at, got, x)
		}
	}
}

// The units between two instants are exact, but at least 0 and at most what a word holds.
func TestUnitsBetweenInstantsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	var none, most int
	for _, l := range edgeLimits {
		m := newLayout(l, 0, firstInstant(l))
		for _, start := range instants(l, rng) {
			for _, at := range []uint64{
				0, start - 1, start, start + 1, start + rng.Uint64()>>rng.IntN(64), math.MaxUint64,
			} {
				want := supplyAt(l, m.scale, at)
				switch want.Sub(want, supplyAt(l, m.scale, start)); {
				case want.Sign() < 0:
					want.SetUint64(0)
					none++
				case !want.IsUint64():
					want.SetUint64(math.MaxUint64)
					most++
				}
				if got := m.supply.at(at).after(m.supply.at(start)); got != want.Uint64() {
					t.Fatalf("limit %+v: %d units from %d to %d, want %v", l, got, start, at, want)
				}
			}
		}
	}
	if none == 0 || most == 0 {
		t.Errorf("%d readings before the other, and %d far after it", none, most)
	}
}

// The last instant of the clock is one that a call can wait for.
func TestWaitUntilTheLastInstant(t *testing.T) {
	m := newLayout(tb.Limit{Capacity: 10, Tokens: 1, Per: time.Second}, 0, 0)
	for then, want := range map[uint64]time.Duration{m.end - 1: 4, m.end: 5, m.end + 1: tb.Never} {
		if wait := m.timeTo(m.end-5, then); wait != want {
			t.Errorf("%v to %d after the end, want %v", wait, int64(then-m.end), want)
		}
	}
}
