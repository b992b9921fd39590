package simulate

import (
	"math"
	"time"
)

// Contender is a kind of controller.
type Contender struct {
	Name   string
	Source string
	start  func(*Scenario) controller
}

// Contenders returns all contenders, the controller of package adapt first.
func Contenders() []Contender {
	const ms = time.Millisecond
	return []Contender{
		{"adapt", "this library", func(s *Scenario) controller { return newAdaptive(s) }},
		ruled("AIMD", "TCP Reno, on rates", 250*ms, func() law { return aimd{} }),
		ruled("Gradient2", "Netflix concurrency-limits", 100*ms, func() law { return &gradient{} }),
		ruled("Vegas", "Netflix concurrency-limits", 100*ms, func() law { return &vegas{} }),
		ruled("correlation", "failsafe-go", 100*ms, func() law { return newCorrelation() }),
		ruled("CUBIC", "AWS SDK, adaptive retries", 500*ms, func() law { return &cubic{} }),
	}
}

// ruled returns a contender that applies a law after each interval.
func ruled(name, source string, interval time.Duration, newLaw func() law) Contender {
	return Contender{name, source, func(s *Scenario) controller {
		return &windowed{s: s, law: newLaw(), interval: interval, current: s.Start}
	}}
}

// fixed returns a contender whose rate never changes.
func fixed(rate float64) Contender {
	return Contender{"fixed", "", func(*Scenario) controller {
		return &windowed{law: constant{}, interval: math.MaxInt64, current: rate, s: &Scenario{}}
	}}
}

type constant struct{}

func (constant) next(rate float64, _ *window) float64 { return rate }

// aimd grows by a hundredth of the range in each second with refusals and without overload. It
// falls by a tenth in each interval with overload.
type aimd struct{}

func (aimd) next(rate float64, w *window) float64 {
	switch {
	case w.overloaded():
		return rate * 0.9
	case w.refused == 0:
		return rate
	}
	return rate + (w.s.Max-w.s.Min)/100*w.length.Seconds()
}

// firstLimit is the number of requests in flight with which the laws below begin.
const firstLimit = 20

// vegas is the Vegas limit of Netflix. Like the two laws below, it computes a limit of requests in
// flight. The rate is that limit divided by the mean latency.
type vegas struct {
	limit, base float64
	age         int
}

func (v *vegas) next(rate float64, w *window) float64 {
	if w.mean == 0 {
		return rate * 0.9
	}
	if v.limit == 0 {
		v.limit = firstLimit
	}
	if v.age++; v.base == 0 || w.mean < v.base || v.age > 300 {
		v.base, v.age = w.mean, 0
		return v.limit / w.mean
	}
	step := max(1, math.Log10(v.limit))
	queue := math.Ceil(v.limit * (1 - v.base/w.mean))
	switch {
	case w.failed > 0:
		v.limit -= step
	case float64(2*w.mostInFlight) < v.limit:
	case queue <= step:
		v.limit += 6 * step
	case queue < 3*step:
		v.limit += step
	case queue > 6*step:
		v.limit -= step
	}
	v.limit = max(1, v.limit)
	return v.limit / w.mean
}

// gradient is the Gradient2 limit of Netflix.
type gradient struct{ limit, long float64 }

func (g *gradient) next(rate float64, w *window) float64 {
	if w.mean == 0 {
		return rate * 0.9
	}
	if g.limit == 0 {
		g.limit, g.long = firstLimit, w.mean
	}
	g.long += (w.mean - g.long) * 2 / 601
	if g.long > 2*w.mean {
		g.long *= 0.9
	}
	if float64(2*w.mostInFlight) >= g.limit {
		slope := max(0.5, min(1, g.long/w.mean))
		g.limit = max(1, 0.8*g.limit+0.2*(g.limit*slope+4))
	}
	return g.limit / w.mean
}

// cubic is the client's rate limiter in the adaptive retries of the AWS SDKs. The SDKs know of
// throttling only; here answers above the target count as throttled, too.
type cubic struct {
	measured, last float64
	cut            time.Duration
	active         bool
}

func (c *cubic) next(rate float64, w *window) float64 {
	c.measured += 0.8 * (float64(w.begun)/w.length.Seconds() - c.measured)
	if w.overloaded() {
		c.last, c.cut, c.active = min(c.measured, rate), w.now, true
		return 0.7 * c.last
	}
	if !c.active {
		return rate
	}
	plateau := math.Cbrt(c.last * 0.3 / 0.4)
	rate = c.last + 0.4*math.Pow((w.now-c.cut).Seconds()-plateau, 3)
	return min(rate, 2*c.measured)
}
