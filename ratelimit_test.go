package ratelimit_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// The types of this package are aliases of types of tb and tb/cas, so their methods cost the same.
var (
	_ *ratelimit.Limiter[int] = (*cas.Limiter[int])(nil)
	_ *ratelimit.TokenBucket  = (*cas.TokenBucket)(nil)
	_ *ratelimit.Bucket       = (*cas.Bucket)(nil)
	_ tb.Limiter              = (*ratelimit.TokenBucket)(nil)
	_ tb.Charge               = ratelimit.Charge(nil)
	_ *tb.ConfigError         = (*ratelimit.ConfigError)(nil)
	_ tb.Decision             = ratelimit.Decision{}
	_ *tb.WaitError           = (*ratelimit.WaitError)(nil)
	_ tb.Reservation          = ratelimit.Reservation{}
	_ tb.Level                = ratelimit.Level{}
	_ tb.Limit                = ratelimit.Limit{}
	_ tb.Stats                = ratelimit.Stats{}
)

// Calls of the functions of this package are inlined, so they cost nothing either. A generic
// function is inlined where it is instantiated, so New is not in the list.
func TestFunctionsAreInlined(t *testing.T) {
	out, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Skipf("no compiler to ask: %v\n%s", err, out)
	}
	for _, f := range []string{
		"NewTokenBucket", "NewBucket", "PerSecond", "TakeAll",
		"WithClock", "WithMaxKeys", "WithOverflow",
	} {
		if !strings.Contains(string(out), ": can inline "+f+"\n") {
			t.Errorf("%s is not inlined", f)
		}
	}
}
