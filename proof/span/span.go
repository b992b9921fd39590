// Package span computes when the delta of a bucket of tb/cas runs out, so that its next grant moves
// it. It knows the words of tb/cas, so it counts in the same units. It judges no answer.
package span

import (
	"math"
	"math/bits"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/unit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Origin is the first reading of a clock. It fixes the fraction of a unit that is supplied
// at each reading.
var Origin = time.Unix(1_000_000_000, 0)

// Start makes Origin the first reading of the clock of a new limiter, by a call that every
// limiter refuses.
func Start(l interface {
	AllowAt(t time.Time, key string, cost float64) (tb.Decision, error)
}) {
	_, _ = l.AllowAt(Origin, "", tb.MaxCapacity+1)
}

// Delta returns a little more than the time after which the delta of a bucket of limit l runs
// out. The documentation of tb/cas says how many bits the delta has.
func Delta(l tb.Limit) time.Duration {
	scale, _ := unit.Scale(l.Capacity)
	units := float64(uint64(1) << (63 - bits.Len64(2*uint64(l.Capacity)*scale-1)))
	ns := (units + 1) / float64(scale) / float64(l.Tokens) * float64(l.Per)
	return 2 + time.Duration(min(ns, math.MaxInt64/2))
}
