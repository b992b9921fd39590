package replay

import "gonum.org/v1/plot/plotter"

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
	e.Value.levels.coarsen(r.timeline.shift)
	t, width := r.trials[0], r.timeline.width().Seconds()
	refill := float64(t.rate.Tokens) / t.rate.Per.Seconds() * width
	tokens, known := float64(t.burst), e.Value.levels.points
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
