package check_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/check"
)

func TestCost(t *testing.T) {
	const least = math.SmallestNonzeroFloat64
	for _, tokens := range []float64{-least, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if check.Cost(tokens) == nil || check.Actual(tokens) == nil {
			t.Errorf("%v is valid", tokens)
		}
	}
	for _, tokens := range []float64{least, 1, math.MaxFloat64} {
		if check.Cost(tokens) != nil || check.Actual(tokens) != nil {
			t.Errorf("%v is not valid", tokens)
		}
	}
	if check.Cost(0) == nil || check.Actual(0) != nil {
		t.Error("0 is only an actual cost")
	}
}

func TestCharge(t *testing.T) {
	var keeps, waits, holds check.Charge
	if !keeps.Keep(1, false) || !keeps.Keep(0, true) || !keeps.MayWait(0, true) ||
		!waits.MayWait(1, false) || !holds.HoldOnRefusal(1, false) || !holds.HoldOnRefusal(0, true) {
		t.Fatal(keeps.Err, waits.Err, holds.Err)
	}
	if keeps.MayWait(1, true) || waits.Keep(1, true) || holds.HoldOnRefusal(1, true) {
		t.Error("a charge waits, and keeps tokens or holds")
	}
	// Only the first error counts.
	if keeps.Keep(-1, false) || waits.MayWait(-1, false) || holds.HoldOnRefusal(-1, false) {
		t.Error("an argument is negative")
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{keeps.Err, "within is 1ns, want 0 after Keep or HoldOnRefusal"},
		{waits.Err, "keep is 1, want 0 after MayWait"},
		{holds.Err, "hold is 1ns, want 0 after MayWait"},
	} {
		if got := fmt.Sprint(c.err); got != "ratelimit: "+c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
