package tb

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

func TestLimitPerSecondIsTheSimplestFraction(t *testing.T) {
	for _, tt := range []struct {
		rate   float64
		tokens int64
		per    time.Duration
	}{
		{1, 1, time.Second},
		{5, 5, time.Second},
		{0.1, 1, 10 * time.Second},
		{2.5, 5, 2 * time.Second},
		{1.0 / 3, 1, 3 * time.Second},
		{2.0 / 3, 2, 3 * time.Second},
		{1.0 / 86400, 1, 24 * time.Hour},
		{300.0 / 60, 5, time.Second},
		{1e9, 1_000_000_000, time.Second},
		{123456.789, 123456789, 1000 * time.Second},
		{1.0 / (365 * 86400), 1, 365 * 24 * time.Hour},
		{float64(time.Second) / math.MaxInt64, 1, math.MaxInt64},
		{3.3e-10, 1, 3030303030303030303},
	} {
		got, err := LimitPerSecond(7, tt.rate)
		want := Limit{7, tt.tokens, tt.per}
		if tt.per > 1<<60 { // many periods round to the rate
			want.Per = got.Per
		}
		if err != nil || got != want {
			t.Errorf("LimitPerSecond(7, %v) = %v, %v; want %v", tt.rate, got, err, want)
		}
	}
}

func TestLimitPerSecondRoundsToTheRate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		rate := math.Exp2(rng.Float64()*62 - 33)
		if rate > 1e9 || rate < 1.1e-10 {
			continue
		}
		l, err := LimitPerSecond(1, rate)
		if err != nil {
			t.Fatalf("rate %v: %v", rate, err)
		}
		exact := new(big.Rat).SetFrac64(l.Tokens, int64(l.Per))
		exact.Mul(exact, big.NewRat(int64(time.Second), 1))
		if back, _ := exact.Float64(); back != rate {
			t.Fatalf("rate %v: got %d per %v, which is %v", rate, l.Tokens, l.Per, back)
		}
	}
}

func TestBetweenFindsTheSmallestDenominator(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2_000 {
		lo := big.NewRat(rng.Int64N(200), rng.Int64N(50)+1)
		hi := new(big.Rat).Add(lo, big.NewRat(1, rng.Int64N(300)+1))
		want := new(big.Rat)
		for q := int64(1); ; q++ {
			p := new(big.Int).Mul(lo.Num(), big.NewInt(q))
			p.Quo(p, lo.Denom()).Add(p, big.NewInt(1))
			want.SetFrac(p, big.NewInt(q))
			if want.Cmp(hi) < 0 {
				break
			}
		}
		if got := between(lo, hi); got.Cmp(want) != 0 {
			t.Fatalf("between(%v, %v) = %v, want %v", lo, hi, got, want)
		}
	}
}

func TestConfigErrorNamesFieldValueAndRange(t *testing.T) {
	perSecond := func(capacity int, rate float64) error {
		_, err := LimitPerSecond(capacity, rate)
		return err
	}
	options := func(o ...Option) error { _, err := Apply(o...); return err }
	for _, tt := range []struct {
		name  string
		err   error
		field string
	}{
		{"capacity 0", Limit{0, 1, 1}.Validate(), "Capacity"},
		{"capacity negative", Limit{-1, 1, 1}.Validate(), "Capacity"},
		{"capacity too large", Limit{MaxCapacity + 1, 1, 1}.Validate(), "Capacity"},
		{"per 0", Limit{1, 1, 0}.Validate(), "Per"},
		{"per negative", Limit{1, 1, -time.Second}.Validate(), "Per"},
		{"tokens 0", Limit{1, 0, 1}.Validate(), "Tokens"},
		{"tokens negative", Limit{1, -5, 1}.Validate(), "Tokens"},
		{"rate above 1e9", Limit{1, 3, 2}.Validate(), "Tokens"},
		{"zero rate", perSecond(1, 0), "refillPerSec"},
		{"negative rate", perSecond(1, -1), "refillPerSec"},
		{"NaN rate", perSecond(1, math.NaN()), "refillPerSec"},
		{"+Inf rate", perSecond(1, math.Inf(1)), "refillPerSec"},
		{"-Inf rate", perSecond(1, math.Inf(-1)), "refillPerSec"},
		{"rate too slow", perSecond(1, 1e-10), "refillPerSec"},
		{"rate too fast", perSecond(1, math.Nextafter(1e9, 2e9)), "refillPerSec"},
		{"rate with capacity 0", perSecond(0, 1), "Capacity"},
		{"nil clock", options(WithClock(nil)), "WithClock"},
		{"no keys", options(WithMaxKeys(0)), "WithMaxKeys"},
		{"too many keys", options(WithMaxKeys(maxMaxKeys + 1)), "WithMaxKeys"},
		{"unknown overflow", options(WithOverflow(7)), "WithOverflow"},
	} {
		var cfg *ConfigError
		switch {
		case !errors.As(tt.err, &cfg):
			t.Errorf("%s: error %v is not a *ConfigError", tt.name, tt.err)
		case cfg.Field != tt.field || cfg.Value == nil || cfg.Range == "":
			t.Errorf("%s: got %+v, want field %q with value and range", tt.name, cfg, tt.field)
		}
	}
	for _, l := range []Limit{
		{1, 1, 1}, {MaxCapacity, 1, math.MaxInt64}, {1, math.MaxInt64, math.MaxInt64},
	} {
		if err := l.Validate(); err != nil {
			t.Errorf("%+v: unexpected error: %v", l, err)
		}
	}
}
