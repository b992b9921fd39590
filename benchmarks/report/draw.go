package main

import (
	"bytes"
	"image/color"
	"math"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of a panel, and in it of the room for names to the right of the data.
const (
	panelHeight = 10 * vg.Centimeter
	panelWidth  = 14 * vg.Centimeter
	namesWidth  = 3.4 * vg.Centimeter
	lineHeight  = 11 // points, of a name
)

func (c chart) svg(raw *results) ([]byte, error) {
	width := panelWidth * vg.Length(len(c.panels))
	if len(c.panels) == 1 {
		width = panelWidth * 3 / 2
	}
	canvas := vgsvg.New(width, panelHeight)
	page := draw.New(canvas)
	each := width / vg.Length(len(c.panels))
	for i, p := range c.panels {
		plot, err := p.plot(raw)
		if err != nil {
			return nil, err
		}
		left := each * vg.Length(i)
		plot.Draw(draw.Crop(page, left+4, left+each-width-namesWidth, 4, -4))
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, err
	}
	// For readers without the font that the drawing was laid out with, ones of its widths.
	const font = "font-family:Liberation Sans"
	return bytes.ReplaceAll(svg.Bytes(), []byte(font),
		[]byte(font+",Arial,Helvetica,sans-serif")), nil
}

func (p panel) plot(raw *results) (*plot.Plot, error) {
	all, columns, err := p.series(raw)
	if err != nil {
		return nil, err
	}
	pl := p.axes(columns)
	slices.Reverse(all) // the first ones, which matter most, on top
	names := new(names)
	for i, s := range all {
		look := lookOf(s.impl)
		shift := 0.0
		if p.points { // side by side, where they would hide each other
			shift = 0.6 * (0.5 - float64(i)/float64(len(all)-1))
		}
		points := make(plotter.XYs, len(s.at))
		for j := range points {
			points[j] = plotter.XY{X: s.at[j] + shift, Y: s.to[j]}
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width, line.Dashes = look.color, look.width, look.dash
		dots.Color, dots.Shape, dots.Radius = look.color, look.glyph, look.width+vg.Points(2)
		if !p.points {
			pl.Add(line)
		}
		pl.Add(dots)
		names.add(s.impl, points[len(points)-1], look, p.points)
	}
	pl.Add(names)
	return pl, nil
}

// axes returns a plot without data.
func (p panel) axes(columns []string) *plot.Plot {
	pl := plot.New()
	pl.BackgroundColor = color.Transparent
	pl.Title.Text, pl.X.Label.Text, pl.Y.Label.Text = p.title, p.x, p.y
	pl.Title.Padding = vg.Points(6)
	for _, style := range []*text.Style{&pl.Title.TextStyle, &pl.X.Label.TextStyle,
		&pl.Y.Label.TextStyle, &pl.X.Tick.Label, &pl.Y.Tick.Label} {
		style.Font.Variant, style.Color = "Sans", ink
	}
	for _, axis := range []*plot.Axis{&pl.X, &pl.Y} {
		axis.Color, axis.Tick.Color = ink, ink
	}
	var ticks plot.ConstantTicks
	for i, name := range columns {
		if p.labels != nil {
			name = p.labels[name]
		}
		if name != "" {
			ticks = append(ticks, plot.Tick{Value: float64(i), Label: name})
		}
	}
	pl.X.Tick.Marker = ticks
	pl.X.Min, pl.X.Max = -0.3, float64(len(columns))-0.7
	if p.points {
		pl.X.Min, pl.X.Max = -0.5, float64(len(columns))-0.5
	}
	pl.Y.Scale, pl.Y.Tick.Marker = plot.LogScale{}, logTicks{p.durations}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Width = rule, 0
	pl.Add(grid)
	return pl
}

// logTicks are at 1, 2 and 5 of each power of ten, and only at the powers if those alone
// are many.
type logTicks struct{ durations bool }

func (t logTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	steps := []float64{1, 2, 5}
	if high/low > 1e4 {
		steps = steps[:1]
	}
	for power := math.Floor(math.Log10(low)); power <= math.Log10(high); power++ {
		for _, step := range steps {
			if v := step * math.Pow(10, power); v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: t.label(v)})
			}
		}
	}
	return ticks
}

func (t logTicks) label(v float64) string {
	if t.durations {
		return time.Duration(v).String()
	}
	return thousands(strconv.FormatFloat(v, 'g', 12, 64))
}
