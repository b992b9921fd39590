package cas

import (
	"math"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

func TestReadAgreesWithInstant(t *testing.T) {
	c := newClock(nil, time.Now(), tb.Limit{Capacity: 1, Tokens: 1, Per: time.Second})
	for range 1000 {
		before, read, after := c.instant(time.Now()), c.read(), c.instant(time.Now())
		if read < before || read > after {
			t.Fatalf("read %d, want %d to %d", read, before, after)
		}
	}
}

func TestFirstReadingStartsAnInjectedClock(t *testing.T) {
	c := newClock(time.Now, time.Now(), tb.Limit{Capacity: 1, Tokens: 1, Per: time.Second})
	first := time.Unix(1, 0)
	if !c.begin(first).Equal(first) || !c.begin(time.Unix(2, 0)).Equal(first) {
		t.Error("the clock does not start at its first reading")
	}
}

// time.Time.Sub returns at most 292 years. A reading that is further back must not become later
// than another one, whatever the period.
func TestEarliestReadingDoesNotWrapAround(t *testing.T) {
	for _, per := range []time.Duration{1, 2, 3, 7, 49, 73, 127, time.Second, math.MaxInt64} {
		c := newClock(time.Now, time.Now(), tb.Limit{Capacity: 1, Tokens: 1, Per: per})
		now := c.instant(time.Now())
		if earliest := c.instant(time.Time{}); earliest > now {
			t.Errorf("per %d: the zero time is instant %d, and now is %d", per, earliest, now)
		}
	}
}
