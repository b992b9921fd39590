package algorithm

import (
	"math"
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
