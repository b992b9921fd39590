package replay

import (
	"fmt"
	"io"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/svgchart"
)

// zoomedKeys is how many of the keys refused most have a chart of their own.
const zoomedKeys = 3

// WriteSVG draws the requests over time and the worst windows of the keys refused most. For a
// suggestion, it draws the bursts that the log needs and the requests over time. Options.Picture
// must be set.
func (res *Result) WriteSVG(w io.Writer) error {
	charts := append(res.charts(), res.bucketCharts(zoomedKeys)...)
	_, err := w.Write(svgchart.Drawing(charts, 1, chartColors))
	return err
}

// chartColors are the colours of the charts. Most are from the palettes of Okabe and Ito and of
// Tol, which colour-blind readers can distinguish.
var chartColors = pageFile("charts.css")

// newChart returns an empty chart.
func newChart(title, y string) svgchart.Chart {
	return svgchart.Chart{
		Title: title, Text: title, Width: 960, Height: 250,
		X: svgchart.Axis{Max: 1}, Y: svgchart.Axis{Label: y, Max: 1},
	}
}

// charts returns the charts of the whole log.
func (res *Result) charts() (all []svgchart.Chart) {
	t, o := res.replayer.timeline, res.Report.Limits
	if s := res.Report.Suggestion; s == nil {
		all = append(all, t.decisionsChart(&o[0], res.Report.sampleNote()))
	} else {
		all = append(all, s.clientsChart())
		if len(s.Rates[0].Requests) > 0 {
			all = append(all, s.requestsChart())
		}
		all = append(all, t.trafficChart(res.Report.sampleNote()))
	}
	if t.level > 0 {
		all = append(all, t.busiestChart())
	}
	return all
}

// newChart returns an empty chart over the time of the log.
func (t *timeline) newChart(title string) svgchart.Chart {
	c := newChart(title, "requests")
	if t.empty() {
		return c
	}
	c.Time, c.X.Min, c.X.Max = true, t.start(t.lo), t.start(t.hi+1)
	c.X.Label, c.X.Ticks = timeLabel(c.X.Min, c.X.Max), timeTicks(c.X.Min, c.X.Max)
	for n := t.lo; n <= t.hi; n++ {
		b := t.bin(n)
		text := fmt.Sprintf("%s: %s %s%s", dateTime(time.Unix(int64(t.start(n)), 0).UTC()),
			grouped(b.total()), plural(b.total(), "request", "requests"), ifAny(b.refused, ", %s refused"))
		if t.level > 0 {
			text += ifAny(b.peak, ", at most %s in a second")
		}
		c.Values = append(c.Values, svgchart.Value{From: t.start(n), To: t.start(n + 1), Text: text})
	}
	return c
}

// addCurve adds a count in each bin as a curve in steps.
func (t *timeline) addCurve(c *svgchart.Chart, l svgchart.Layer, count func(bin) uint64) {
	for n := t.lo; n <= t.hi; n++ {
		y := float64(count(*t.bin(n)))
		l.Points = append(l.Points, svgchart.Point{X: t.start(n), Y: y},
			svgchart.Point{X: t.start(n + 1), Y: y})
		c.Y.Max = max(c.Y.Max, y)
	}
	c.Layers, c.Y.Ticks = append(c.Layers, l), wholeTicks(c.Y.Max)
}

// decisionsChart draws the granted requests and the refused ones on top, so that the outline is
// the whole traffic.
func (t *timeline) decisionsChart(o *Outcome, note string) svgchart.Chart {
	c := t.newChart(fmt.Sprintf("Requests under a limit of %s, burst %s, in each %s%s", o.Rate,
		grouped(o.Burst), interval(t.width()), note))
	c.Text += fmt.Sprintf(": %s of %s refused", grouped(o.Refused), grouped(o.Granted+o.Refused))
	area := svgchart.Layer{Name: "refused", Class: "refused", Shape: svgchart.Area}
	t.addCurve(&c, area, bin.total) // of which the refused ones stay visible
	area.Name, area.Class = "granted", "granted"
	t.addCurve(&c, area, bin.justGranted)
	return c
}

// trafficChart draws the requests.
func (t *timeline) trafficChart(note string) svgchart.Chart {
	c := t.newChart(fmt.Sprintf("Requests in each %s%s", interval(t.width()), note))
	t.addCurve(&c, svgchart.Layer{Class: "granted", Shape: svgchart.Area}, bin.total)
	return c
}

// busiestChart draws the most requests in a second. The mean over a long interval would hide
// a burst.
func (t *timeline) busiestChart() svgchart.Chart {
	c := t.newChart("Requests in the busiest second of each " + interval(t.width()))
	c.Text += ": at most " + grouped(t.seconds.Most)
	t.addCurve(&c, svgchart.Layer{Class: "granted"}, bin.busiest)
	return c
}

func (rep *Report) sampleNote() string {
	if rep.Sample {
		return " (generated sample)"
	}
	return ""
}

// interval writes a duration in words if it is a whole number of a unit: minute, 15 minutes.
func interval(d time.Duration) string {
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"day", day}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		switch n := d / unit.length; {
		case d%unit.length != 0 || n == 0:
		case n == 1:
			return unit.name
		default:
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return durationText(d)
}
