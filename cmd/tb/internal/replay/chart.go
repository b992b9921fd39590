package replay

import (
	"bytes"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/seed-181794aa/ratelimit/internal/svgfont"
)

// The sizes of a chart, of the title above it and of the legend at its right edge.
const (
	chartWidth  = 27 * vg.Centimeter
	chartHeight = 7 * vg.Centimeter
	titleHeight = vg.Centimeter
	legendWidth = 4 * vg.Centimeter
)

// chart is a plot with its title above it and its legend beside it, and a text for readers that do
// not see it.
type chart struct {
	*plot.Plot
	title  string
	legend plot.Legend
	text   string
}

// newChart returns an empty chart with a grid.
func newChart(th *theme, title, x, y string) chart {
	c := chart{plot.New(), title, plot.NewLegend(), title}
	c.X.Label.Text, c.Y.Label.Text = x, y
	c.Title.TextStyle.XAlign, c.Title.TextStyle.YAlign = text.XLeft, text.YBottom
	c.BackgroundColor = th.page
	c.legend.Top, c.legend.Left, c.legend.Padding = true, true, vg.Points(3)
	for _, style := range []*text.Style{&c.Title.TextStyle, &c.X.Label.TextStyle,
		&c.Y.Label.TextStyle, &c.X.Tick.Label, &c.Y.Tick.Label, &c.legend.TextStyle} {
		style.Font.Variant, style.Color = "Sans", th.ink
	}
	for _, axis := range []*plot.Axis{&c.X, &c.Y} {
		axis.Color, axis.Tick.Color = th.ink, th.ink
	}
	c.legend.TextStyle.Font.Size = vg.Points(10)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = th.grid, th.grid
	c.Add(grid)
	return c
}

// writeCharts draws the charts one above the other.
func writeCharts(w io.Writer, th *theme, charts []chart) error {
	canvas := vgsvg.New(chartWidth, chartHeight*vg.Length(len(charts)))
	drawCharts(draw.New(canvas), th, charts)
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	_, err := w.Write(svgfont.AddFallbacks(svg.Bytes()))
	return err
}

// drawCharts draws the charts one above the other, with aligned data areas. The titles begin at the
// left, where a narrow screen shows them.
func drawCharts(page draw.Canvas, th *theme, charts []chart) {
	page.SetColor(th.page)
	page.Fill(page.Path())
	var rows [][]*plot.Plot
	for _, c := range charts {
		rows = append(rows, []*plot.Plot{c.Plot})
	}
	const margin = 5
	tiles := draw.Tiles{Rows: len(rows), Cols: 1, PadY: titleHeight,
		PadTop: titleHeight, PadBottom: margin, PadLeft: margin, PadRight: legendWidth}
	for i, row := range plot.Align(rows, tiles, page) {
		rows[i][0].Draw(row[0])
		above := vg.Point{X: margin, Y: row[0].Max.Y + margin}
		page.FillText(charts[i].Title.TextStyle, above, charts[i].title)
		beside := draw.Crop(page, chartWidth-legendWidth+2*margin, 0, 0, 0)
		beside.Max.Y = row[0].Max.Y
		charts[i].legend.Draw(beside)
	}
}

// appendStep appends a horizontal line from x on, at height y.
func appendStep(points plotter.XYs, x, width, y float64) plotter.XYs {
	return append(points, plotter.XY{X: x, Y: y}, plotter.XY{X: x + width, Y: y})
}
