package cas

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// firstInstant returns the instant of the clock's first reading: the most whole periods within
// 2⁶³ ns, at least 146 years. So readings from before the first one are instants too. At a
// multiple of the period the floor in S takes nothing, so decisions equal the decisions of a
// clock that starts at 0.
func firstInstant(l tb.Limit) uint64 {
	per := uint64(l.Per)
	return math.MaxInt64 / per * per
}

// endOf returns the last instant of a clock: 292 years after its first reading.
func endOf(firstInstant uint64) uint64 { return firstInstant + math.MaxInt64 }

// clock turns readings into instants: nanoseconds since the epoch. Readings that are too early
// become instant 0. No reading is later than 292 years after the first one.
type clock struct {
	now          func() time.Time          // nil for the monotonic clock
	firstInstant uint64                    // instant of the first reading
	start        time.Time                 // first reading without an injected clock
	first        atomic.Pointer[time.Time] // first reading of an injected clock
}

func newClock(now func() time.Time, start time.Time, l tb.Limit) clock {
	return clock{now: now, firstInstant: firstInstant(l), start: start}
}

// read reads the clock.
func (c *clock) read() uint64 {
	if c.now == nil {
		return c.firstInstant + uint64(time.Since(c.start))
	}
	return c.instant(c.now())
}

// instant returns the instant of the reading t.
func (c *clock) instant(t time.Time) uint64 {
	start := &c.start
	if c.now != nil {
		if start = c.first.Load(); start == nil {
			start = c.begin(t)
		}
	}
	return c.firstInstant + uint64(max(t.Sub(*start), -time.Duration(c.firstInstant)))
}

// begin makes t the first reading of an injected clock, unless it has one, and returns the first
// reading. It is not inlined, because t escapes here: inlined, it would make every reading
// allocate.
//
//go:noinline
func (c *clock) begin(t time.Time) *time.Time {
	c.first.CompareAndSwap(nil, &t)
	return c.first.Load()
}
