package replay

import (
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// begin returns when a bin begins, in seconds since 1970.
func (t *timeline) begin(n int64) float64 { return float64(n << t.shift) }

// curve returns a curve in steps, one for each bin: the count in it, by second. The
// timeline must not be empty.
func (t *timeline) curve(count func(bin) uint64) plotter.XYs {
	width := t.width().Seconds()
	var points plotter.XYs
	for n := t.lo; n <= t.hi; n++ {
		points = appendStep(points, t.begin(n), width, float64(count(*t.at(n)))/width)
	}
	return points
}

// appendStep appends a horizontal line at height y, from x on.
func appendStep(points plotter.XYs, x, width, y float64) plotter.XYs {
	return append(points, plotter.XY{X: x, Y: y}, plotter.XY{X: x + width, Y: y})
}

// tokensLeft returns the curve of a key in steps. In bins in which it sent no request
// its bucket refills.
func (r *replayer) tokensLeft(e *tracked) plotter.XYs {
	e.levels.coarsen(r.timeline.shift)
	t, width := r.trials[0], r.timeline.width().Seconds()
	refill := float64(t.rate.Tokens) / t.rate.Per.Seconds() * width
	tokens, known := float64(t.burst), e.levels.points
	var points plotter.XYs
	for n := r.timeline.lo; n <= r.timeline.hi; n++ {
		tokens = min(float64(t.burst), tokens+refill)
		if len(known) > 0 && known[0].bin == n {
			tokens = float64(known[0].tokens)
			known = known[1:]
		}
		points = appendStep(points, r.timeline.begin(n), width, tokens)
	}
	return points
}

const day = 24 * time.Hour

// tickSteps are the distances between marks on the time axis to choose from.
var tickSteps = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute,
	15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 30 * day, 90 * day, 365 * day, 3650 * day, 36500 * day,
}

// timeTicks marks round instants of UTC on an axis in seconds since 1970. The ticks that
// come with the plots are round in decimal, at 100,000 seconds instead of a day.
type timeTicks struct{}

// Ticks implements plot.Ticker: it marks as many instants as have room for their labels.
func (timeTicks) Ticks(first, last float64) []plot.Tick {
	const most = 9
	i := 0
	for i < len(tickSteps)-1 && (last-first)/tickSteps[i].Seconds() > most {
		i++
	}
	step := int64(tickSteps[i].Seconds())
	format := tickFormat(tickSteps[i], last-first > day.Seconds())
	var ticks []plot.Tick
	at := (int64(first) + step - 1) / step * step
	for ; float64(at) <= last; at += step {
		label := time.Unix(at, 0).UTC().Format(format)
		ticks = append(ticks, plot.Tick{Value: float64(at), Label: label})
	}
	return ticks
}

// tickFormat returns a format that tells marks apart that are step apart.
func tickFormat(step time.Duration, days bool) string {
	switch {
	case step >= day:
		return time.DateOnly
	case days:
		return "Jan 2 15:04"
	case step >= time.Minute:
		return "15:04"
	}
	return time.TimeOnly
}
