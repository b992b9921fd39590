package check_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/check"
)

func TestCost(t *testing.T) {
	const least = math.SmallestNonzeroFloat64
	for _, tokens := range []float64{0, -least, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if check.Cost(tokens) == nil || (check.Actual(tokens) == nil) != (tokens == 0) {
			t.Errorf("%v is valid", tokens)
		}
	}
	for _, tokens := range []float64{least, 1, math.MaxFloat64} {
		if check.Cost(tokens) != nil || check.Actual(tokens) != nil {
			t.Errorf("%v is not valid", tokens)
		}
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
	for want, err := range map[string]error{
		"within is 1ns, want 0 after Keep or HoldOnRefusal": keeps.Err,
		"keep is 1, want 0 after MayWait":                   waits.Err,
		"hold is 1ns, want 0 after MayWait":                 holds.Err,
	} {
		if got := fmt.Sprint(err); got != "ratelimit: "+want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
