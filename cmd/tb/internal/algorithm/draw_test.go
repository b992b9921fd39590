package algorithm

import (
	"bytes"
	"fmt"
	"image/color"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/seed-181794aa/ratelimit/internal/svgfont"
)

const (
	panelWidth, panelHeight = 13 * vg.Centimeter, 6.2 * vg.Centimeter
	columns, rows           = 2, 3

	// The rows of the requests are below the curve, in tokens.
	grantedRow, refusedRow = -2.5, -5.0
)

// The colours are readable on a light page and on a dark one. The page shows through.
var (
	ink          = color.Gray{Y: 120}
	edgeColor    = color.NRGBA{R: 120, G: 120, B: 120, A: 110}
	grantedColor = color.RGBA{R: 45, G: 140, B: 205, A: 255}
	refusedColor = color.RGBA{R: 221, G: 110, B: 30, A: 255}
)

// drawScene returns a picture with a panel for each run.
func drawScene(all []run) ([]byte, error) {
	canvas := vgsvg.New(panelWidth*columns, panelHeight*rows)
	page := draw.New(canvas)
	for i, r := range all {
		p, err := r.panel()
		if err != nil {
			return nil, err
		}
		left, top := panelWidth*vg.Length(i%columns), panelHeight*vg.Length(i/columns)
		p.Draw(draw.Crop(page, left+4, left+panelWidth-8-page.Max.X,
			page.Max.Y-top-panelHeight+8, -top-4))
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, err
	}
	return svgfont.AddFallbacks(svg.Bytes()), nil
}

// panel draws the requests of a run, and how many were granted in the last window.
func (r *run) panel() (*plot.Plot, error) {
	window := 2 * second
	grants := r.grants()
	p := newPanel(fmt.Sprintf("%s: at most %d in 0.2 s, %d in 2 s",
		r.title(), most(grants, window/10), most(grants, window)))
	granted, refused := plotter.XYs{}, plotter.XYs{}
	for i, result := range r.results {
		if x := seconds(r.instants[i]); result.Granted {
			granted = append(granted, plotter.XY{X: x, Y: grantedRow})
		} else {
			refused = append(refused, plotter.XY{X: x, Y: refusedRow})
		}
	}
	curve, err := plotter.NewLine(inWindow(grants, window, r.instants[0], 3*window))
	if err != nil {
		return nil, err
	}
	curve.Color, curve.Width = grantedColor, vg.Points(1.6)
	p.Add(curve)
	for _, dots := range []struct {
		points plotter.XYs
		color  color.Color
		shape  draw.GlyphDrawer
	}{{granted, grantedColor, draw.CircleGlyph{}}, {refused, refusedColor, draw.CrossGlyph{}}} {
		scatter, err := plotter.NewScatter(dots.points)
		if err != nil {
			return nil, err
		}
		scatter.GlyphStyle = draw.GlyphStyle{Color: dots.color, Shape: dots.shape, Radius: vg.Points(2)}
		p.Add(scatter)
	}
	return p, nil
}

// inWindow returns, as a curve in steps, how many grants were in the last window at each instant.
func inWindow(grants []grant, window, from, to uint64) (curve plotter.XYs) {
	const step = second / 200
	for now := from; now <= to; now += step {
		count := 0
		for _, g := range grants {
			if g.instant <= now && now < g.instant+window {
				count++
			}
		}
		y := float64(count)
		if last := len(curve) - 1; last < 0 || curve[last].Y != y {
			if last >= 0 {
				curve = append(curve, plotter.XY{X: seconds(now), Y: curve[last].Y})
			}
			curve = append(curve, plotter.XY{X: seconds(now), Y: y})
		}
	}
	return append(curve, plotter.XY{X: seconds(to), Y: curve[len(curve)-1].Y})
}

func seconds(instant uint64) float64 { return float64(instant) / 1e9 }

// newPanel returns a panel without data: windows of 2 s, and lines at the count and at twice the
// count.
func newPanel(title string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "seconds", "in the last 2 s"
	p.Title.Padding = vg.Points(4)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 1.5, 6, -6, 22
	var ticks plot.ConstantTicks
	for x := 2; x <= 6; x++ {
		ticks = append(ticks, plot.Tick{Value: float64(x), Label: strconv.Itoa(x)})
	}
	p.X.Tick.Marker = ticks
	p.Y.Tick.Marker = plot.ConstantTicks{
		{Value: refusedRow, Label: "refused"}, {Value: grantedRow, Label: "granted"},
		{Value: 0, Label: "0"}, {Value: 10, Label: "10"}, {Value: 20, Label: "20"},
	}
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle,
		&p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font.Variant, style.Color = "Sans", ink
	}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color = ink, ink
	}
	for _, line := range []plotter.XYs{
		{{X: 2, Y: -6}, {X: 2, Y: 22}}, {{X: 4, Y: -6}, {X: 4, Y: 22}},
		{{X: 1.5, Y: 10}, {X: 6, Y: 10}}, {{X: 1.5, Y: 20}, {X: 6, Y: 20}},
	} {
		p.Add(&plotter.Line{XYs: line, LineStyle: draw.LineStyle{
			Color: edgeColor, Width: vg.Points(0.8), Dashes: []vg.Length{4, 3},
		}})
	}
	return p
}
