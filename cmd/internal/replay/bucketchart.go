package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/internal/svgchart"
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

// bucketCharts returns the charts of the keys refused most.
func (res *Result) bucketCharts(most int) (all []svgchart.Chart) {
	if l := res.replayer.lens; l != nil {
		for _, e := range res.replayer.ranking.most(most) {
			all = append(all, l.chart(e))
		}
	}
	return all
}

// chart draws the tokens of a bucket in the window of a key with the most refusals, until the
// bucket is full again.
func (l *lens) chart(e *tracked) svgchart.Chart {
	w := e.Value.zoom.mostRefused()
	all := w.granted + w.refused
	c := newChart(fmt.Sprintf("%s: %s of %s %s refused in the worst %s, from %s",
		isolated(shorten(keyText(compositekey.Parts(e.Key)), titleRunes)), grouped(w.refused),
		grouped(all), plural(all, "request", "requests"), interval(time.Duration(l.width)),
		dateTime(time.Unix(0, w.start).UTC())), "tokens")
	levels := l.levelsOver(w)
	start, end := levels[0].X, levels[len(levels)-1].X
	end = max(end, start+0.001) // a refill may take less than these numbers show
	lead, labelWidth := (end-start)/30, (end-start)/20
	points, radii := w.refusals()
	labels, texts := w.counts(labelWidth)
	c.Layers = []svgchart.Layer{
		{Name: "refused", Class: "refused", Shape: svgchart.Dots, Points: points, Radii: radii},
		{Name: "tokens", Class: "tokens", Points: l.withLead(levels, lead)},
		{Shape: svgchart.Labels, Points: labels, Texts: texts},
	}
	c.X = svgchart.Axis{
		Label: timeLabel(start, end), Min: start - lead, Max: end, Ticks: timeTicks(start-lead, end),
	}
	c.Y.Min, c.Y.Max = -l.burst/5, l.burst // room for the circles and numbers at 0
	c.Y.Ticks = wholeTicks(l.burst)
	c.Values = w.values(end)
	return c
}

// values returns the steps of a window that ends at a time in seconds.
func (w *window) values(end float64) (all []svgchart.Value) {
	for i, s := range w.steps {
		to := end
		if i+1 < len(w.steps) {
			to = seconds(w.steps[i+1].first)
		}
		all = append(all, svgchart.Value{From: seconds(s.first), To: to,
			Text: fmt.Sprintf("%s: %.1f tokens, then %.1f%s", dateTime(time.Unix(0, s.first).UTC()),
				s.before, s.after, ifAny(s.refused, ", %s refused"))})
	}
	return all
}

// levelsOver returns the level of a bucket over a window as a saw.
func (l *lens) levelsOver(w *window) (points []svgchart.Point) {
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
func (l *lens) withLead(levels []svgchart.Point, while float64) []svgchart.Point {
	first := levels[0]
	if first.Y < l.burst { // what was before is not known
		return levels
	}
	return slices.Insert(levels, 0, svgchart.Point{X: first.X - while, Y: first.Y})
}

// appendRefill appends the refill of a bucket from the last point to a time, or until the bucket is
// full.
func (l *lens) appendRefill(points []svgchart.Point, until int64) []svgchart.Point {
	last := points[len(points)-1]
	perSecond := l.rate * float64(time.Second)
	if full := last.X + (l.burst-last.Y)/perSecond; full < seconds(until) {
		return append(points, svgchart.Point{X: full, Y: l.burst})
	}
	return append(points, svgchart.Point{
		X: seconds(until), Y: min(l.burst, last.Y+perSecond*(seconds(until)-last.X)),
	})
}

// refusals returns a circle for each step with refusals. Its area grows with their number.
func (w *window) refusals() (points []svgchart.Point, radii []float64) {
	const least, greatest = 1, 8
	for _, s := range w.steps {
		if s.refused > 0 {
			points = append(points, point(s.last, s.after))
			radii = append(radii, min(greatest, least+math.Sqrt(float64(s.refused))))
		}
	}
	return points, radii
}

// counts returns the number of refusals of each step, but none within a distance in seconds of a
// greater one.
func (w *window) counts(distance float64) (points []svgchart.Point, texts []string) {
	steps := slices.Clone(w.steps)
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(b.refused, a.refused) })
	for _, s := range steps {
		at := point(s.last, s.after)
		near := func(p svgchart.Point) bool { return math.Abs(p.X-at.X) < distance }
		if s.refused > 0 && !slices.ContainsFunc(points, near) {
			points, texts = append(points, at), append(texts, grouped(s.refused))
		}
	}
	return points, texts
}

func point(ns int64, tokens float32) svgchart.Point {
	return svgchart.Point{X: seconds(ns), Y: float64(tokens)}
}

// seconds returns a time in seconds since 1970.
func seconds(ns int64) float64 { return float64(ns) / float64(time.Second) }
