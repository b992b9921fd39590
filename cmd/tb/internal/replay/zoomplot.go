package replay

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

// titleRunes is the longest key in the title of a chart.
const titleRunes = 50

// chart draws the tokens of a bucket in the window of a key with the most refusals, until the
// bucket is full again.
func (l *lens) chart(th *theme, e *tracked) (chart, error) {
	w := e.Value.zoom.mostRefused()
	title := fmt.Sprintf("%s, worst %s, from %s: %s of %s %s refused",
		shorten(keyText(compositekey.Parts(e.Key)), titleRunes), roundTime(time.Duration(l.width)),
		dateTime(time.Unix(0, w.start).UTC()), grouped(w.refused), grouped(w.granted+w.refused),
		plural(w.granted+w.refused, "request", "requests"))
	c := newChart(th, title, "UTC", "tokens")
	c.X.Tick.Marker, c.Y.Tick.Marker = timeTicks{}, wholeTicks{}
	line, err := plotter.NewLine(l.levelsOver(w))
	if err != nil {
		return c, err
	}
	line.Color, line.Width = th.tokens, vg.Points(1.2)
	points, sizes := w.refusals()
	refused, err := plotter.NewScatter(points)
	if err != nil {
		return c, err
	}
	refused.GlyphStyle = draw.GlyphStyle{
		Color: th.refused, Radius: vg.Points(3), Shape: draw.CircleGlyph{},
	}
	refused.GlyphStyleFunc = func(i int) draw.GlyphStyle {
		style := refused.GlyphStyle
		style.Radius = sizes[i]
		return style
	}
	c.Add(refused, line)
	c.Y.Min, c.Y.Max = -l.burst/8, l.burst // room for the circles at 0
	c.legend.Add("tokens", line)
	c.legend.Add("refused", refused)
	return c, nil
}

// levelsOver returns the level of a bucket over a window as a saw.
func (l *lens) levelsOver(w *window) (points plotter.XYs) {
	for i, s := range w.steps {
		if i > 0 {
			points = l.appendRefill(points, s.first)
			if end := &points[len(points)-1]; end.X < seconds(s.first) { // the bucket was full
				points = append(points, point(s.first, float32(l.burst)))
			}
		}
		points = append(points, point(s.first, s.before), point(s.last, s.after))
	}
	return l.appendRefill(points, w.start+l.width)
}

// appendRefill appends the refill of a bucket from the last point to a time, or until the bucket is
// full.
func (l *lens) appendRefill(points plotter.XYs, until int64) plotter.XYs {
	last := points[len(points)-1]
	perSecond := l.rate * float64(time.Second)
	if full := last.X + (l.burst-last.Y)/perSecond; full < seconds(until) {
		return append(points, plotter.XY{X: full, Y: l.burst})
	}
	return append(points, plotter.XY{
		X: seconds(until), Y: min(l.burst, last.Y+perSecond*(seconds(until)-last.X)),
	})
}

// refusals returns a circle for each step with refusals. Its area grows with their number.
func (w *window) refusals() (points plotter.XYs, sizes []vg.Length) {
	const least, greatest = 1, 6
	for _, s := range w.steps {
		if s.refused > 0 {
			points = append(points, point(s.last, s.after))
			sizes = append(sizes, vg.Points(min(greatest, least+0.75*math.Sqrt(float64(s.refused)))))
		}
	}
	return points, sizes
}

func point(ns int64, tokens float32) plotter.XY {
	return plotter.XY{X: seconds(ns), Y: float64(tokens)}
}

// seconds returns a time in seconds since 1970.
func seconds(ns int64) float64 { return float64(ns) / float64(time.Second) }
