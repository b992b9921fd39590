package replay

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/seed-181794aa/ratelimit/internal/compositekey"
)

// The sizes of the drawing and of the legends at its right edge.
const (
	svgWidth    = 27 * vg.Centimeter
	svgHeight   = 17 * vg.Centimeter
	legendWidth = 5.5 * vg.Centimeter
	legendRunes = 24 // the longest key in a legend
)

// plottedKeys is how many of the keys refused most get a line. More lines would be hard to
// distinguish.
const plottedKeys = 3

// Colours that colour-blind readers can distinguish (the palette of Okabe and Ito), on the
// white page of the drawing.
var (
	grantedColor = color.RGBA{R: 86, G: 180, B: 233, A: 255}
	refusedColor = color.RGBA{R: 213, G: 94, B: 0, A: 255}
	keyColors    = [plottedKeys]color.Color{
		refusedColor,
		color.RGBA{R: 0, G: 114, B: 178, A: 255},
		color.RGBA{R: 0, G: 158, B: 115, A: 255},
	}
)

// chart is a plot with its legend beside it.
type chart struct {
	*plot.Plot
	legend plot.Legend
}

// WriteSVG draws two plots over time: the requests granted and refused, and the tokens left
// for the keys refused most. Both are empty if there is no request. For a suggestion, it draws the
// bursts that the log needs.
func (res *Result) WriteSVG(w io.Writer) error {
	if s := res.Report.Suggestion; s != nil {
		return s.writeSVG(w)
	}
	decisions, err := res.decisionsChart()
	if err != nil {
		return err
	}
	tokens, err := res.replayer.tokensChart()
	if err != nil {
		return err
	}
	return writeCharts(w, decisions, tokens)
}

// writeCharts draws the charts one above the other.
func writeCharts(w io.Writer, charts ...chart) error {
	canvas := vgsvg.New(svgWidth, svgHeight)
	drawCharts(draw.New(canvas), charts...)
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	_, err := w.Write(withFallbackFonts(svg.Bytes()))
	return err
}

// withFallbackFonts adds fonts of the same widths, for systems without the font of the
// layout.
func withFallbackFonts(svg []byte) []byte {
	const font = "font-family:Liberation Sans"
	return bytes.ReplaceAll(svg, []byte(font), []byte(font+",Arial,Helvetica,sans-serif"))
}

// drawCharts draws the charts one above the other, with aligned data areas.
func drawCharts(page draw.Canvas, charts ...chart) {
	page.SetColor(color.White)
	page.Fill(page.Path())
	var rows [][]*plot.Plot
	for _, c := range charts {
		rows = append(rows, []*plot.Plot{c.Plot})
	}
	const margin = 5
	tiles := draw.Tiles{Rows: len(rows), Cols: 1, PadY: vg.Centimeter / 2,
		PadTop: margin, PadBottom: margin, PadLeft: margin, PadRight: legendWidth}
	for i, row := range plot.Align(rows, tiles, page) {
		rows[i][0].Draw(row[0])
		beside := draw.Crop(page, svgWidth-legendWidth+2*margin, 0, 0, 0)
		beside.Max.Y = row[0].Max.Y - vg.Centimeter/2 // below the title
		charts[i].legend.Draw(beside)
	}
}

// newChart returns an empty chart over the time of the log.
func (t *timeline) newChart(title, y string) chart {
	c := newChart(title, "UTC", y)
	c.X.Tick.Marker = timeTicks{}
	c.Y.Min = 0
	if t.empty() {
		c.Y.Max, c.X.Tick.Marker = 1, plot.ConstantTicks(nil)
	} else {
		c.X.Min, c.X.Max = t.start(t.lo), t.start(t.hi+1)
	}
	return c
}

// newChart returns an empty chart with a light grid.
func newChart(title, x, y string) chart {
	c := chart{plot.New(), plot.NewLegend()}
	c.Title.Text, c.X.Label.Text, c.Y.Label.Text = title, x, y
	c.legend.Top, c.legend.Left, c.legend.Padding = true, true, vg.Points(3)
	for _, style := range []*text.Style{&c.Title.TextStyle, &c.X.Label.TextStyle,
		&c.Y.Label.TextStyle, &c.X.Tick.Label, &c.Y.Tick.Label, &c.legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	c.legend.TextStyle.Font.Size = vg.Points(10)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{Y: 230}, color.Gray{Y: 230}
	c.Add(grid)
	return c
}

// decisionsChart draws the granted requests a second and the refused ones on top, so that
// the outline is the whole traffic.
func (res *Result) decisionsChart() (chart, error) {
	t, timeline := res.replayer.trials[0], res.replayer.timeline
	title := fmt.Sprintf("Requests under a limit of %s, burst %s, mean over %s",
		t.rate, grouped(t.burst), timeline.width())
	if res.Report.Sample {
		title += " (generated sample)"
	}
	c := timeline.newChart(title, "requests a second")
	if timeline.empty() {
		return c, nil
	}
	all, err := newArea(timeline.curve(bin.total), refusedColor)
	if err != nil {
		return c, err
	}
	granted, err := newArea(timeline.curve(bin.justGranted), grantedColor)
	if err != nil {
		return c, err
	}
	c.Add(all, granted) // the visible rest of all is refused
	c.legend.Add("refused", all)
	c.legend.Add("granted", granted)
	return c, nil
}

// newArea returns the area below a curve.
func newArea(curve plotter.XYs, fill color.Color) (*plotter.Polygon, error) {
	first, last := curve[0], curve[len(curve)-1]
	first.Y, last.Y = 0, 0
	p, err := plotter.NewPolygon(slices.Concat(plotter.XYs{first}, curve, plotter.XYs{last}))
	if err != nil {
		return nil, err
	}
	p.Color = fill
	p.Width = 0
	return p, nil
}

// tokensChart draws the fewest tokens left in each interval, as a horizontal line. What
// happened to a bucket within an interval is not recorded.
func (r *replayer) tokensChart() (chart, error) {
	title := fmt.Sprintf("Fewest tokens left in %s, for the keys refused most", r.timeline.width())
	c := r.timeline.newChart(title, "tokens")
	c.Y.Max, c.Y.Tick.Marker = float64(r.trials[0].burst), wholeTicks{}
	var lines []plot.Plotter
	for i, e := range r.ranking.most(plottedKeys) {
		line, err := plotter.NewLine(r.tokensLeft(e))
		if err != nil {
			return c, err
		}
		line.Color, line.Width = keyColors[i], vg.Points(1.2)
		lines = append(lines, line)
		c.legend.Add(shorten(keyText(compositekey.Parts(e.Key)), legendRunes), line)
	}
	slices.Reverse(lines) // draws the key refused most last, above the other lines
	c.Add(lines...)
	return c, nil
}

// curve returns the count in each bin, a second, as a curve in steps. The timeline must not
// be empty.
func (t *timeline) curve(count func(bin) uint64) plotter.XYs {
	width := t.width().Seconds()
	var points plotter.XYs
	for n := t.lo; n <= t.hi; n++ {
		points = appendStep(points, t.start(n), width, float64(count(*t.bin(n)))/width)
	}
	return points
}

// appendStep appends a horizontal line from x on, at height y.
func appendStep(points plotter.XYs, x, width, y float64) plotter.XYs {
	return append(points, plotter.XY{X: x, Y: y}, plotter.XY{X: x + width, Y: y})
}

// tokensLeft returns the levels of a key as a curve in steps. The bucket refills in bins
// without a request.
func (r *replayer) tokensLeft(e *tracked) plotter.XYs {
	lows := &e.Value.lows
	lows.coarsen(r.timeline.shift)
	t, width := r.trials[0], r.timeline.width().Seconds()
	refill := float64(t.rate.Tokens) / t.rate.Per.Seconds() * width
	tokens, rest := float64(t.burst), lows.points
	var points plotter.XYs
	for n := r.timeline.lo; n <= r.timeline.hi; n++ {
		tokens = min(float64(t.burst), tokens+refill)
		if len(rest) > 0 && rest[0].bin == n {
			tokens = float64(rest[0].tokens)
			rest = rest[1:]
		}
		points = appendStep(points, r.timeline.start(n), width, tokens)
	}
	return points
}

// wholeTicks marks whole numbers on an axis. The ticks of the plot package also mark
// fractions, such as 2.5.
type wholeTicks struct{}

// Ticks implements plot.Ticker: at most 7 numbers, with steps of 1, 2, 5, 10, …
func (wholeTicks) Ticks(first, last float64) []plot.Tick {
	const most = 7
	step := 1.0
	for i := 0; (last-first)/step > most-1; i++ {
		step *= [...]float64{2, 2.5, 2}[i%3]
	}
	return ticks(first, last, step, func(v float64) string { return grouped(int64(v)) })
}

// ticks marks the multiples of step from first to last.
func ticks(first, last, step float64, label func(float64) string) (all []plot.Tick) {
	for v := math.Ceil(first/step) * step; v <= last; v += step {
		all = append(all, plot.Tick{Value: v, Label: label(v)})
	}
	return all
}

const day = 24 * time.Hour

// timeSteps are the possible distances between the marks of a time axis.
var timeSteps = []time.Duration{
	time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute,
	15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 30 * day, 90 * day, 365 * day, 3650 * day, 36500 * day,
}

// timeTicks marks round times of UTC on an axis in seconds since 1970. The ticks of the
// plot package are round in decimal: 100,000 seconds and not a day.
type timeTicks struct{}

// Ticks implements plot.Ticker: as many times as have room for their labels.
func (timeTicks) Ticks(first, last float64) []plot.Tick {
	const most = 9
	i := 0
	for i < len(timeSteps)-1 && (last-first)/timeSteps[i].Seconds() > most {
		i++
	}
	format := timeFormat(timeSteps[i], last-first > day.Seconds())
	return ticks(first, last, timeSteps[i].Seconds(), func(v float64) string {
		return time.Unix(int64(v), 0).UTC().Format(format)
	})
}

// timeFormat returns the shortest format in which marks that are step apart differ.
func timeFormat(step time.Duration, severalDays bool) string {
	switch {
	case step >= day:
		return time.DateOnly
	case severalDays:
		return "Jan 2 15:04"
	case step >= time.Minute:
		return "15:04"
	}
	return time.TimeOnly
}
