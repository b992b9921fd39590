package replay

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of the drawing, and of the room for legends at its right edge.
const (
	svgWidth    = 27 * vg.Centimeter
	svgHeight   = 17 * vg.Centimeter
	legendWidth = 5.5 * vg.Centimeter
	legendRunes = 24 // what fits into it of a key
)

// plottedKeys is how many of the keys refused most get a line: more cannot be told
// apart.
const plottedKeys = 3

// Colours that stay apart for colour-blind readers (Okabe and Ito's palette), on the
// white that the drawing brings along.
var (
	grantedColor = color.RGBA{R: 86, G: 180, B: 233, A: 255}
	refusedColor = color.RGBA{R: 213, G: 94, B: 0, A: 255}
	keyColors    = [plottedKeys]color.Color{
		refusedColor,
		color.RGBA{R: 0, G: 114, B: 178, A: 255},
		color.RGBA{R: 0, G: 158, B: 115, A: 255},
	}
)

// chart is a plot with its legend beside it, where it hides nothing.
type chart struct {
	*plot.Plot
	legend plot.Legend
}

// WriteSVG draws two plots over time: requests granted and refused, and the tokens left
// for the keys refused most. Without any request they are empty.
func (res *Result) WriteSVG(w io.Writer) error {
	decisions, err := res.decisionsChart()
	if err != nil {
		return err
	}
	tokens, err := res.replayer.tokensChart()
	if err != nil {
		return err
	}
	canvas := vgsvg.New(svgWidth, svgHeight)
	drawCharts(draw.New(canvas), decisions, tokens)
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	_, err = w.Write(withFallbackFonts(svg.Bytes()))
	return err
}

// withFallbackFonts adds fonts of the same widths, for readers who lack the one that the
// drawing was laid out with.
func withFallbackFonts(svg []byte) []byte {
	const font = "font-family:Liberation Sans"
	return bytes.ReplaceAll(svg, []byte(font), []byte(font+",Arial,Helvetica,sans-serif"))
}

// drawCharts draws the charts one above the other, with their data areas aligned.
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

// newChart returns an empty chart over the time of the log, the same for all charts, with
// a light grid and the legend at the top.
func (t *timeline) newChart(title, y string) chart {
	c := chart{plot.New(), plot.NewLegend()}
	c.Title.Text, c.Y.Label.Text = title, y
	c.X.Label.Text, c.X.Tick.Marker = "UTC", timeTicks{}
	c.Y.Min = 0
	if t.empty() {
		c.Y.Max, c.X.Tick.Marker = 1, plot.ConstantTicks(nil)
	} else {
		c.X.Min, c.X.Max = t.begin(t.lo), t.begin(t.hi+1)
	}
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

// decisionsChart draws granted requests a second, and the refused ones on top of them, so
// that the outline is the whole traffic.
func (res *Result) decisionsChart() (chart, error) {
	t, timeline := res.replayer.trials[0], res.replayer.timeline
	title := fmt.Sprintf("What %s with a burst of %s would have done, mean over %s",
		t.rate, count(t.burst), timeline.width())
	if res.Report.Sample {
		title += " (generated sample)"
	}
	c := timeline.newChart(title, "requests a second")
	if timeline.empty() {
		return c, nil
	}
	all, err := area(timeline.curve(bin.total), refusedColor)
	if err != nil {
		return c, err
	}
	granted, err := area(timeline.curve(bin.grants), grantedColor)
	if err != nil {
		return c, err
	}
	c.Add(all, granted) // what looks out above granted is refused
	c.legend.Add("refused", all)
	c.legend.Add("granted", granted)
	return c, nil
}

// area fills what is below a curve.
func area(curve plotter.XYs, fill color.Color) (*plotter.Polygon, error) {
	begin, end := curve[0], curve[len(curve)-1]
	begin.Y, end.Y = 0, 0
	p, err := plotter.NewPolygon(slices.Concat(plotter.XYs{begin}, curve, plotter.XYs{end}))
	if err != nil {
		return nil, err
	}
	p.Color = fill
	p.Width = 0
	return p, nil
}

// tokensChart draws the fewest tokens left in each interval, as a horizontal line for each:
// how a bucket fell and rose within it is not known.
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
		c.legend.Add(shorten(keyText(parts(e.Key)), legendRunes), line)
	}
	slices.Reverse(lines) // the key refused most is drawn last, on top of the others
	c.Add(lines...)
	return c, nil
}
