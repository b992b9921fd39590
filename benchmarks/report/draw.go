package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/seed-181794aa/ratelimit/internal/svgfont"
)

// The size of a panel, and the room for the y axis and the legend beside the data.
const (
	panelHeight = 10 * vg.Centimeter
	panelWidth  = 14 * vg.Centimeter
	axisWidth   = 1.8 * vg.Centimeter
	legendWidth = 3.8 * vg.Centimeter
)

func (c chart) svg(raw *results) ([]byte, error) {
	plots := make([]*plot.Plot, len(c.panels))
	for i, p := range c.panels {
		var err error
		if plots[i], err = p.plot(raw); err != nil {
			return nil, err
		}
	}
	return drawing(plots)
}

// drawing returns plots side by side.
func drawing(plots []*plot.Plot) ([]byte, error) {
	canvas := vgsvg.New(panelWidth*vg.Length(len(plots)), panelHeight)
	page := draw.New(canvas)
	for i, plot := range plots {
		left := panelWidth * vg.Length(i)
		right := left + panelWidth - legendWidth - page.Max.X
		plot.Draw(draw.Crop(page, left+4, right, 4, -4))
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, err
	}
	return svgfont.AddFallbacks(svg.Bytes()), nil
}

func (p panel) plot(raw *results) (*plot.Plot, error) {
	all, columns, err := p.series(raw)
	if err != nil {
		return nil, err
	}
	pl := p.axes(columns)
	for _, s := range slices.Backward(all) { // the first lines on top
		points := make(plotter.XYs, len(s.columns))
		for i := range points {
			points[i] = plotter.XY{X: s.columns[i], Y: s.medians[i]}
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		look, ok := looks[s.impl]
		if !ok {
			return nil, fmt.Errorf("%s has no look", s.impl)
		}
		line.Color, line.Width, line.Dashes = look.color, look.width, look.dash
		dots.Color, dots.Shape, dots.Radius = look.color, look.glyph, look.width+vg.Points(2)
		pl.Add(line, dots)
		pl.Legend.Add(s.impl, line, dots)
	}
	return pl, nil
}

// axes returns a plot without data.
func (p panel) axes(columns []string) *plot.Plot {
	pl := empty(p.title, p.x, p.y)
	var ticks plot.ConstantTicks
	for i, name := range columns {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: name})
	}
	pl.X.Tick.Marker = ticks
	pl.X.Min, pl.X.Max = -0.3, float64(len(columns))-0.7
	pl.Y.Scale, pl.Y.Tick.Marker = plot.LogScale{}, logTicks{}
	return pl
}

// empty returns a plot without data and without ticks of its own.
func empty(title, x, y string) *plot.Plot {
	pl := plot.New()
	pl.BackgroundColor = color.Transparent
	pl.Title.Text, pl.X.Label.Text, pl.Y.Label.Text = title, x, y
	pl.Title.Padding = vg.Points(6)
	pl.Legend.Left, pl.Legend.XOffs = true, panelWidth-axisWidth-legendWidth
	pl.Legend.Padding, pl.Legend.TextStyle.Font = vg.Points(3), pl.X.Tick.Label.Font
	for _, style := range []*text.Style{&pl.Title.TextStyle, &pl.X.Label.TextStyle,
		&pl.Y.Label.TextStyle, &pl.X.Tick.Label, &pl.Y.Tick.Label, &pl.Legend.TextStyle} {
		style.Font.Variant, style.Color = "Sans", ink
	}
	for _, axis := range []*plot.Axis{&pl.X, &pl.Y} {
		axis.Color, axis.Tick.Color = ink, ink
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Width = rule, 0
	pl.Add(grid)
	return pl
}

// logTicks are at 1, 2 and 5 of each power of ten.
type logTicks struct{}

func (logTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	for power := math.Floor(math.Log10(low)); power <= math.Log10(high); power++ {
		for _, step := range []float64{1, 2, 5} {
			if v := step * math.Pow(10, power); v >= low && v <= high {
				label := thousands(strconv.FormatFloat(v, 'g', 12, 64))
				ticks = append(ticks, plot.Tick{Value: v, Label: label})
			}
		}
	}
	return ticks
}
