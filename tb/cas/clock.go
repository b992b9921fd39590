package cas

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// epoch returns the instant at which the clock of a limit starts: the last whole
// number of periods before 2⁶³ ns, which is more than 146 years. With that much
// before it, readings from before the limiter's creation are instants like any other,
// and as S is a whole number of units there, the decisions are those of a clock that
// starts at 0.
func epoch(l tb.Limit) uint64 {
	per := uint64(l.Per)
	return math.MaxInt64 / per * per
}

// clock turns readings into instants: nanoseconds since an epoch, never below 0 and
// never beyond epoch + 292 years.
type clock struct {
	now   func() time.Time // nil for the monotonic clock
	epoch uint64
	start time.Time                 // of the monotonic clock
	first atomic.Pointer[time.Time] // of an injected clock: its first reading
}

func newClock(now func() time.Time, l tb.Limit) clock {
	return clock{now: now, epoch: epoch(l), start: time.Now()}
}

func (c *clock) read() uint64 {
	if c.now == nil {
		return c.epoch + uint64(time.Since(c.start))
	}
	return c.instant(c.now())
}

// instant returns the instant of t.
func (c *clock) instant(t time.Time) uint64 {
	start := &c.start
	if c.now != nil {
		if start = c.first.Load(); start == nil {
			start = c.begin(t)
		}
	}
	return c.epoch + uint64(max(t.Sub(*start), -time.Duration(c.epoch)))
}

// begin starts an injected clock at its first reading: so that one is no different from
// those that follow. It is outlined because t escapes here.
//
//go:noinline
func (c *clock) begin(t time.Time) *time.Time {
	c.first.CompareAndSwap(nil, &t)
	return c.first.Load()
}
