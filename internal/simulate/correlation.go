package simulate

import (
	"math"
	"slices"
)

// correlation is the adaptive limiter of failsafe-go: thresholds of Vegas on the 90th percentile
// relative to its long average, and correlations of the requests in flight with throughput and
// latency.
type correlation struct {
	limit        float64
	p90s         []float64 // of ten windows
	full         bool      // in one of them the limiter refused a request
	most         int       // requests in flight in them
	last         []float64 // percentiles, for a median of five
	short, long  average
	flight       []float64
	flow, delays []float64
}

const correlated = 50 // windows

func newCorrelation() *correlation {
	return &correlation{limit: firstLimit, short: average{age: 5}, long: average{age: 10}}
}

func (c *correlation) next(rate float64, w *window) float64 {
	if w.mean == 0 {
		return rate * 0.9
	}
	c.p90s = append(c.p90s, w.p90)
	c.full, c.most = c.full || w.refused > 0, max(c.most, w.mostInFlight)
	if len(c.p90s) == 10 {
		c.adjust(mean(c.p90s), float64(c.most), c.full)
		c.p90s, c.full, c.most = c.p90s[:0], false, 0
	}
	return c.limit / w.mean
}

// adjust moves the limit by one step, once in ten windows.
func (c *correlation) adjust(p90, flight float64, full bool) {
	c.last = keep(c.last, p90, 5)
	sorted := slices.Sorted(slices.Values(c.last))
	recent := c.short.add(sorted[len(sorted)/2])
	base := c.long.add(recent)
	c.flight = keep(c.flight, flight, correlated)
	c.flow = keep(c.flow, flight/recent, correlated)
	c.delays = keep(c.delays, recent, correlated)
	flow, delay := pearson(c.flight, c.flow), pearson(c.flight, c.delays)

	step := max(1, math.Log10(c.limit))
	queue := math.Ceil(c.limit * (1 - base/recent))
	steady := len(c.flow) >= 10 && variation(c.flow) < 0.2
	switch {
	case queue > 6*step,
		full && flow < 0,
		full && (flow < 0.3 || steady) && delay > 0.5,
		c.limit > 5*flight:
		c.limit -= step
	case queue < 3*step:
		c.limit += step
	}
	c.limit = max(1, c.limit)
}

// average is an exponential average that begins as the mean of ten values.
type average struct {
	age   float64
	value float64
	n     int
}

func (a *average) add(x float64) float64 {
	if a.n++; a.n <= 10 {
		a.value += (x - a.value) / float64(a.n)
	} else {
		a.value += (x - a.value) * 2 / (a.age + 1)
	}
	return a.value
}

// keep appends x to a list of at most n values.
func keep(list []float64, x float64, n int) []float64 {
	list = append(list, x)
	return list[max(0, len(list)-n):]
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}

// variation returns the coefficient of variation.
func variation(x []float64) float64 {
	m, sum := mean(x), 0.0
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum/float64(len(x))) / m
}

// pearson returns the correlation of two lists, or 0 if they are short or constant.
func pearson(x, y []float64) float64 {
	mx, my := mean(x), mean(y)
	var xy, xx, yy float64
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		xy, xx, yy = xy+dx*dy, xx+dx*dx, yy+dy*dy
	}
	if len(x) < 10 || xx == 0 || yy == 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}
