package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

// isolated keeps a text that is written from right to left from turning the text around it.
func isolated(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return s
	}
	return "\u2068" + s + "\u2069" // first strong isolate, and its end
}

// titleRunes is the longest key in the title of a chart.
const titleRunes = 50

// chart draws the tokens of a bucket in the window of a key with the most refusals, until the
// bucket is full again.
func (l *lens) chart(th *theme, e *tracked) (chart, error) {
	w := e.Value.zoom.mostRefused()
	all := w.granted + w.refused
	title := fmt.Sprintf("%s: %s of %s %s refused in the worst %s, from %s",
		isolated(shorten(keyText(compositekey.Parts(e.Key)), titleRunes)), grouped(w.refused),
		grouped(all), plural(all, "request", "requests"), interval(time.Duration(l.width)),
		dateTime(time.Unix(0, w.start).UTC()))
	c := newChart(th, title, "", "tokens")
	c.X.Tick.Marker, c.Y.Tick.Marker = timeTicks{}, wholeTicks{}
	levels := l.levelsOver(w)
	start, end := levels[0].X, levels[len(levels)-1].X
	lead, labelWidth := (end-start)/30, (end-start)/20
	line, err := plotter.NewLine(l.withLead(levels, lead))
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
	counts, err := plotter.NewLabels(w.counts(labelWidth))
	if err != nil {
		return c, err
	}
	for i := range counts.TextStyle {
		counts.TextStyle[i] = c.X.Tick.Label
		counts.TextStyle[i].YAlign = draw.YTop
	}
	counts.Offset.Y = -vg.Points(7)
	c.Add(refused, line, counts)
	c.X.Min, c.X.Label.Text = start-lead, timeLabel(start, end)
	c.Y.Min, c.Y.Max = -l.burst/5, l.burst // room for the circles and numbers at 0
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

// withLead returns the levels with a full bucket for a while before them, so that the first fall is
// inside the chart.
func (l *lens) withLead(levels plotter.XYs, while float64) plotter.XYs {
	first := levels[0]
	if first.Y < l.burst { // what was before is not known
		return levels
	}
	return slices.Insert(levels, 0, plotter.XY{X: first.X - while, Y: first.Y})
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

// counts returns the number of refusals of each step, but none within a distance in seconds of a
// greater one.
func (w *window) counts(distance float64) (labels plotter.XYLabels) {
	steps := slices.Clone(w.steps)
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(b.refused, a.refused) })
	for _, s := range steps {
		at := point(s.last, s.after)
		near := func(p plotter.XY) bool { return math.Abs(p.X-at.X) < distance }
		if s.refused > 0 && !slices.ContainsFunc(labels.XYs, near) {
			labels.XYs = append(labels.XYs, at)
			labels.Labels = append(labels.Labels, grouped(s.refused))
		}
	}
	return labels
}

func point(ns int64, tokens float32) plotter.XY {
	return plotter.XY{X: seconds(ns), Y: float64(tokens)}
}

// seconds returns a time in seconds since 1970.
func seconds(ns int64) float64 { return float64(ns) / float64(time.Second) }
