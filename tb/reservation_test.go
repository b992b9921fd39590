package tb

import (
	"errors"
	"math"
	"testing"
)

func TestReservationThatWasRefusedEnds(t *testing.T) {
	r := NewReservation(Decision{RetryAfter: Never}, 0, nil)
	r.Cancel()
	if err := r.Settle(5); err != nil || r.Allowed || r.Delay() != 0 {
		t.Errorf("%+v: Settle returned %v, want nil", r, err)
	}
	for _, actual := range []float64{-1, math.NaN(), math.Inf(1)} {
		if err := r.Settle(actual); !errors.Is(err, ErrInvalidCost) {
			t.Errorf("Settle(%v) = %v, want ErrInvalidCost", actual, err)
		}
	}
}
