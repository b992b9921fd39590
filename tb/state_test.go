package tb

import (
	"errors"
	"math"
	"testing"
	"time"
)

func TestStatesOfABucket(t *testing.T) {
	now := time.Unix(1, 0)
	for _, tokens := range []float64{-1 << 32, -0.5, 0, MaxCapacity} {
		if err := (State{Tokens: tokens, At: now}).Validate(); err != nil {
			t.Errorf("%v tokens: %v", tokens, err)
		}
	}
	for _, tokens := range []float64{
		math.Nextafter(-1<<32, math.Inf(-1)), math.Nextafter(MaxCapacity, math.Inf(1)), math.NaN(),
		math.Inf(1), math.Inf(-1),
	} {
		var cfg *ConfigError
		err := (State{Tokens: tokens, At: now}).Validate()
		if !errors.As(err, &cfg) || cfg.Field != "Tokens" || cfg.Range != "-4294967296 to 1073741824" {
			t.Errorf("%v tokens: %v", tokens, err)
		}
	}
	for _, tt := range []struct {
		field string // that is wrong, if any
		state State
	}{
		{"", State{At: now, Held: now.Add(1)}},
		{"", State{Tokens: -1, At: now, Held: now.Add(time.Hour)}},
		{"Tokens", State{Tokens: 1e-6, At: now, Held: now.Add(1)}},
		{"Held", State{At: now, Held: now}},
		{"Held", State{At: now, Held: now.Add(-1)}},
		{"At", State{Held: now}},
	} {
		var cfg *ConfigError
		err := tt.state.Validate()
		if errors.As(err, &cfg); tt.field == "" && err != nil || tt.field != "" && cfg.Field != tt.field {
			t.Errorf("%+v: %v, want an error of %q", tt.state, err, tt.field)
		}
	}
	var cfg *ConfigError
	if err := (State{}).Validate(); !errors.As(err, &cfg) || cfg.Field != "At" {
		t.Errorf("no time: %v", err)
	}
}
