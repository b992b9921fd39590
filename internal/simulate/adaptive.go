package simulate

import (
	"time"

	"github.com/seed-181794aa/ratelimit/adapt"
	"github.com/seed-181794aa/ratelimit/tb"
)

// adaptive is the controller of package adapt, with simulated time.
type adaptive struct {
	now     time.Duration
	limit   tb.Limit
	control *adapt.Controller
}

func newAdaptive(s *Scenario) *adaptive {
	a := &adaptive{}
	var err error
	a.control, err = adapt.New(a, adapt.Config{
		Capacity: s.Burst, Min: s.Min, Max: s.Max, Start: s.Start, TargetP99: s.Target,
		Now: func() time.Time { return time.Unix(0, int64(a.now)) },
	})
	if err != nil {
		panic(err) // the scenarios are constant
	}
	return a
}

func (a *adaptive) SetLimit(l tb.Limit) error {
	a.limit = l
	return nil
}

func (a *adaptive) rate() float64 { return float64(a.limit.Tokens) / a.limit.Per.Seconds() }

func (a *adaptive) refused(now time.Duration) {
	a.now = now
	a.control.Refused()
}

func (a *adaptive) begin(now time.Duration) handle {
	a.now = now
	return a.control.Begin()
}

func (a *adaptive) end(now, _ time.Duration, h handle, o outcome) {
	a.now = now
	if r := h.(adapt.Request); o == success {
		r.Done()
	} else {
		r.Fail(0)
	}
}
