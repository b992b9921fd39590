package main

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// names writes the contenders' names to the right of the data, each at the height of its
// last point or as near to that as the others allow; or as a legend, one below the other.
type names struct {
	list   []named
	legend bool
}

type named struct {
	name string
	at   plotter.XY
	look look
}

func (n *names) add(name string, at plotter.XY, l look, legend bool) {
	n.list = append(n.list, named{name, at, l})
	n.legend = legend
}

// Plot implements plot.Plotter.
func (n *names) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	list := slices.Clone(n.list)
	if !n.legend {
		slices.SortStableFunc(list, func(a, b named) int { return cmp.Compare(a.at.Y, b.at.Y) })
	}
	heights := make([]vg.Length, len(list))
	for i, e := range list {
		heights[i] = y(e.at.Y)
		if n.legend {
			heights[i] = c.Max.Y - lineHeight*vg.Length(len(list)-i)
		}
	}
	spread(heights, lineHeight, c.Max.Y)
	style := text.Style{Color: ink, Font: p.X.Tick.Label.Font, YAlign: text.YCenter,
		Handler: p.X.Tick.Label.Handler}
	left := c.Max.X + 12
	for i, e := range list {
		style.Color = e.look.color
		at := vg.Point{X: left, Y: heights[i]}
		if n.legend {
			c.DrawGlyphNoClip(draw.GlyphStyle{Color: e.look.color, Shape: e.look.glyph,
				Radius: e.look.width + 2}, at)
			at.X += 8
		} else {
			leader := draw.LineStyle{Color: rule, Width: vg.Points(0.8)}
			c.StrokeLine2(leader, x(e.at.X)+5, y(e.at.Y), left-2, heights[i])
		}
		c.FillText(style, at, e.name)
	}
}

// spread moves ascending heights apart until there is a gap between any two, and none is
// above top. They move up only as far as they must, and then all down together.
func spread(heights []vg.Length, gap, top vg.Length) {
	for i := 1; i < len(heights); i++ {
		heights[i] = max(heights[i], heights[i-1]+gap)
	}
	for i := len(heights) - 1; i >= 0; i-- {
		heights[i] = min(heights[i], top)
		top = heights[i] - gap
	}
}
