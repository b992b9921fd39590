package replay

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// zoomedKeys is how many of the keys refused most have a chart of their own.
const zoomedKeys = 3

// WriteSVG draws the requests over time and the worst windows of the keys refused most. For a
// suggestion, it draws the bursts that the log needs and the requests over time. Options.Picture
// must be set.
func (res *Result) WriteSVG(w io.Writer) error {
	charts, err := res.charts(&light)
	if err != nil {
		return err
	}
	return writeCharts(w, &light, charts)
}

// charts returns the charts of the result in a theme.
func (res *Result) charts(th *theme) (charts []chart, err error) {
	add := func(c chart, failed error) {
		if err == nil {
			charts, err = append(charts, c), failed
		}
	}
	if s := res.Report.Suggestion; s != nil {
		add(s.clientsChart(th))
		if len(s.Rates[0].Requests) > 0 {
			add(s.requestsChart(th))
		}
		add(res.trafficChart(th))
	} else {
		add(res.decisionsChart(th))
	}
	if t := res.replayer.timeline; t.level > 0 {
		add(t.busiestChart(th))
	}
	if lens := res.replayer.lens; lens != nil {
		for _, e := range res.replayer.ranking.most(zoomedKeys) {
			add(lens.chart(th, e))
		}
	}
	return charts, err
}

// newChart returns an empty chart over the time of the log.
func (t *timeline) newChart(th *theme, title, y string) chart {
	c := newChart(th, title, "UTC", y)
	c.X.Tick.Marker, c.Y.Tick.Marker = timeTicks{}, wholeTicks{}
	c.Y.Min, c.Y.Max = 0, 1
	if t.empty() {
		c.X.Tick.Marker, c.Y.Tick.Marker = plot.ConstantTicks(nil), plot.ConstantTicks(nil)
	} else {
		c.X.Min, c.X.Max = t.start(t.lo), t.start(t.hi+1)
		c.X.Label.Text = timeLabel(c.X.Min, c.X.Max)
	}
	return c
}

// decisionsChart draws the granted requests and the refused ones on top, so that the outline is
// the whole traffic.
func (res *Result) decisionsChart(th *theme) (chart, error) {
	t, o := res.replayer.timeline, &res.Report.Limits[0]
	c := t.newChart(th, fmt.Sprintf("Requests under a limit of %s, burst %s, in each %s%s", o.Rate,
		grouped(o.Burst), interval(t.width()), res.Report.sampleNote()), "requests")
	c.text += fmt.Sprintf(": %s of %s refused", grouped(o.Refused), grouped(res.Report.Requests))
	return c, errors.Join(
		t.addArea(&c, "refused", bin.total, th.refused), // the visible rest of all
		t.addArea(&c, "granted", bin.justGranted, th.granted))
}

// trafficChart draws the requests.
func (res *Result) trafficChart(th *theme) (chart, error) {
	t := res.replayer.timeline
	title := fmt.Sprintf("Requests in each %s%s", interval(t.width()), res.Report.sampleNote())
	c := t.newChart(th, title, "requests")
	return c, t.addArea(&c, "requests", bin.total, th.granted)
}

func (rep *Report) sampleNote() string {
	if rep.Sample {
		return " (generated sample)"
	}
	return ""
}

// busiestChart draws the most requests in a second. The mean over a long interval would hide
// a burst.
func (t *timeline) busiestChart(th *theme) (chart, error) {
	c := t.newChart(th, "Requests in the busiest second of each "+interval(t.width()), "requests")
	line, err := plotter.NewLine(t.curve(bin.busiest))
	if err != nil {
		return c, err
	}
	line.Color, line.Width = th.granted, vg.Points(1.2)
	c.Add(line)
	c.text += ": at most " + grouped(t.seconds.Most)
	return c, nil
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

// addArea adds the area below a curve, unless the timeline is empty.
func (t *timeline) addArea(c *chart, name string, count func(bin) uint64, fill color.Color) error {
	if t.empty() {
		return nil
	}
	curve := t.curve(count)
	first, last := curve[0], curve[len(curve)-1]
	first.Y, last.Y = 0, 0
	p, err := plotter.NewPolygon(slices.Concat(plotter.XYs{first}, curve, plotter.XYs{last}))
	if err != nil {
		return err
	}
	p.Color, p.Width = fill, 0
	c.Add(p)
	c.legend.Add(name, p)
	return nil
}

// curve returns the count in each bin as a curve in steps. The timeline must not be empty.
func (t *timeline) curve(count func(bin) uint64) plotter.XYs {
	width := t.width().Seconds()
	var points plotter.XYs
	for n := t.lo; n <= t.hi; n++ {
		points = appendStep(points, t.start(n), width, float64(count(*t.bin(n))))
	}
	return points
}
