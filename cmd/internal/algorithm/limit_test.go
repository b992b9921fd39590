package algorithm

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestWindowIsTheTimeToSupplyTheBurst(t *testing.T) {
	for _, tt := range []struct {
		burst  int
		tokens int64
		per    time.Duration
		window time.Duration
	}{
		{10, 5, time.Second, 2 * time.Second},
		{60, 60, time.Minute, time.Minute},
		{1, 3, time.Second, 333_333_334},
		{1, 1, time.Nanosecond, 1},
		{tb.MaxCapacity, 1, time.Nanosecond, tb.MaxCapacity},
	} {
		if l := newLimit(t, tt.burst, tt.tokens, tt.per); l.Window() != tt.window {
			t.Errorf("%+v: %v", tt, l.Window())
		}
	}
}

func TestLimitsOutOfRange(t *testing.T) {
	for _, l := range []tb.Limit{
		{}, {Capacity: 0, Tokens: 1, Per: 1}, {Capacity: 2, Tokens: 1, Per: 100 * 365 * 24 * time.Hour},
		{Capacity: tb.MaxCapacity, Tokens: 1, Per: math.MaxInt64},
		{Capacity: 1, Tokens: math.MaxInt64 - 1, Per: math.MaxInt64}, // more units than a word has
	} {
		if _, err := NewLimit(l); err == nil {
			t.Errorf("%+v: no error", l)
		}
	}
}

// supplied equals a fraction of big integers, up to the ends of its range.
func TestSuppliedIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	limits := []*Limit{
		newLimit(t, tb.MaxCapacity, 1, 4*time.Second), newLimit(t, 1, 1, 146*365*24*time.Hour),
		newLimit(t, tb.MaxCapacity, 1, time.Nanosecond), newLimit(t, 10, 999_999_937, time.Second),
	}
	for range 200 {
		limits = append(limits, randomLimit(t, r))
	}
	for _, l := range limits {
		m := moment{r.Uint64N(1<<63) + l.window, r.Uint64N(l.units)}
		for _, units := range []uint64{1, l.capacity, 1 + r.Uint64N(l.capacity)} {
			want := new(big.Rat).SetFrac(new(big.Int).SetUint64(l.per), new(big.Int).SetUint64(l.units))
			want.Mul(want, new(big.Rat).SetUint64(units))
			want.Add(want, l.rational(m))
			if got := l.supplied(m, units); got.part >= l.units || l.rational(got).Cmp(want) != 0 {
				t.Fatalf("%+v: %d units after %v: %v, want %v", l, units, m, got, want)
			}
		}
	}
}

// rational returns m in nanoseconds.
func (l *Limit) rational(m moment) *big.Rat {
	part := new(big.Rat).SetFrac(new(big.Int).SetUint64(m.part), new(big.Int).SetUint64(l.units))
	return part.Add(part, new(big.Rat).SetUint64(m.ns))
}

func TestUnitsRoundUpTheDecimal(t *testing.T) {
	l := newLimit(t, 10, 1, time.Second)
	for tokens, want := range map[float64]uint64{
		1: 1_000_000, 0.1: 100_000, 0.0000001: 1, 1.0000001: 1_000_001, 10: 10_000_000,
		10.1: 10_000_001, math.MaxFloat64: 10_000_001,
	} {
		if got := l.Units(tokens); got != want {
			t.Errorf("%v tokens: %d units, want %d", tokens, got, want)
		}
	}
}
