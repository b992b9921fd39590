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
		{1.0 / 9223372036, 1, 9223372036 * time.Second},
		{0x1p-33, 1, 1 << 33 * time.Second},
		{float64(time.Second) / math.MaxInt64, 1, math.MaxInt64},
		{3.3e-10, 1, 3030303030303030303},
	} {
		got, err := LimitPerSecond(7, tt.rate)
		want := Limit{7, tt.tokens, tt.per}
		if tt.per > 1<<60 && tt.per%time.Second != 0 { // many periods round to the rate
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

func TestSharesOfALimit(t *testing.T) {
	for _, tt := range []struct {
		whole Limit
		n     int
		share Limit
	}{
		{Limit{10, 3, time.Second}, 1, Limit{10, 3, time.Second}},
		{Limit{10, 3, time.Second}, 3, Limit{3, 3, 3 * time.Second}},
		{Limit{10, 3, time.Second}, 10, Limit{1, 3, 10 * time.Second}},
		{Limit{5, 1, math.MaxInt64 / 2}, 2, Limit{2, 1, math.MaxInt64 - 1}},
	} {
		if got, err := tt.whole.Share(tt.n); err != nil || got != tt.share {
			t.Errorf("%v.Share(%d) = %v, %v, want %v", tt.whole, tt.n, got, err, tt.share)
		}
	}
}

func TestConfigErrorNamesFieldValueAndRange(t *testing.T) {
	perSecond := func(capacity int, rate float64) error {
		_, err := LimitPerSecond(capacity, rate)
		return err
	}
	share := func(l Limit, n int) error { _, err := l.Share(n); return err }
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
		{"share of an impossible limit", share(Limit{}, 1), "Capacity"},
		{"share of no replica", share(Limit{5, 1, 1}, 0), "n"},
		{"share below a token", share(Limit{5, 1, 1}, 6), "n"},
		{"share with too long a period", share(Limit{5, 1, math.MaxInt64 / 2}, 3), "n"},
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
