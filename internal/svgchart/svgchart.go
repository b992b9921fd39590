// Package svgchart draws charts as SVG. They have no colours of their own: a style sheet gives the
// class of each layer a color, so that one drawing is light on a light page and dark on a dark one.
package svgchart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Chart is a chart with two axes. Its size is in pixels, unless a page scales it.
type Chart struct {
	Title         string
	Text          string // the chart in words, for readers that do not see it
	Width, Height float64
	X, Y          Axis
	Layers        []Layer // the first is below the others
	Values        []Value
	// Time reports that the x axis has seconds since 1970. A page can zoom into such a chart: its data
	// is an svg of the class data with the attributes data-from and data-to.
	Time bool
}

// Axis is one dimension of a chart. Min is below Max and, on a logarithmic axis, above 0.
type Axis struct {
	Label    string
	Min, Max float64
	Log      bool
	Ticks    []Tick
}

// Tick is a mark on an axis.
type Tick struct {
	Value float64
	Label string
}

// Layer has points and how they are drawn.
type Layer struct {
	Name   string // in the legend, if it is not empty
	Class  string // of the style
	Shape  Shape
	Points []Point
	Radii  []float64 // of Dots
	Texts  []string  // of the labels
}

// Point is a point in the units of the axes.
type Point struct{ X, Y float64 }

// Shape is how points are drawn.
type Shape int

// The shapes. An area is between a line and the bottom of the chart. A marked line has a dot at
// each of its points.
const (
	Line Shape = iota
	Marked
	Area
	Dots
	Crosses
	Labels
)

// Value is the text that the chart shows when the pointer is at a part of the x axis.
type Value struct {
	From, To float64
	Text     string
}

// The room around the data, for the labels of the axes and, above, for the legend. Each further row
// of the legend has a height of its own.
const left, right, above, bottom, row = 80.0, 36.0, 26.0, 40.0, 18.0

// titleHeight is the room for the title above each chart of a drawing.
const titleHeight = 28.0

// Style has what all charts share. The colours of the layers follow it.
const Style = `
.chart text { font: 12px "Liberation Sans", Arial, Helvetica, sans-serif; fill: currentColor; }
.chart .title { font-size: 13px; font-weight: bold; }
.chart .page { fill: none; }
.chart .axis, .chart .line, .chart .cross { fill: none; stroke: currentColor; }
.chart .grid { stroke: currentColor; opacity: 0.15; }
.chart .line { stroke-width: 1.6; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.chart .area, .chart .dot { fill: currentColor; }
.chart .value { fill: currentColor; opacity: 0; }
.chart .value:hover { opacity: 0.15; }
`

// Drawing returns the SVG of a file with charts of the same size in columns, each with its title
// above it. The style follows Style.
func Drawing(charts []Chart, columns int, style string) []byte {
	var b strings.Builder
	width, height := charts[0].Width, charts[0].Height+titleHeight
	rows := (len(charts) + columns - 1) / columns
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+
		`<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="%[1]v" height="%[2]v"`+
		` viewBox="0 0 %[1]v %[2]v" role="img"><title>%[3]s</title><desc>`,
		width*float64(columns), height*float64(rows), html.EscapeString(charts[0].Title))
	for _, c := range charts {
		b.WriteString(html.EscapeString(c.Text) + ". ")
	}
	fmt.Fprintf(&b, "</desc>\n<style>%s%s</style>\n", Style, style)
	b.WriteString(`<rect class="page" width="100%" height="100%"/>` + "\n")
	for i, c := range charts {
		x, y := width*float64(i%columns), height*float64(i/columns)
		fmt.Fprintf(&b, `<g transform="translate(%v %v)">`+"\n", x, y+titleHeight)
		fmt.Fprintf(&b, `<text class="title" x="10" y="-4">%s</text>`+"\n", html.EscapeString(c.Title))
		c.write(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// SVG returns the chart as an element of a page, without its title. The page has the style.
func (c *Chart) SVG() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %v %v" role="img" aria-label="%s">`+"\n",
		c.Width, c.Height, html.EscapeString(c.Text))
	c.write(&b)
	b.WriteString("</svg>")
	return b.String()
}

// write writes the grid, the layers with their legend, the axes and the values.
func (c *Chart) write(b *strings.Builder) {
	floor, end := c.Height-bottom, c.Width-right
	top := c.writeLegend(b)
	for _, t := range c.X.Ticks {
		x := c.X.place(t.Value, left, end)
		fmt.Fprintf(b, `<path class="grid" d="M%s %vV%v"/>`, number(x), top, floor)
		fmt.Fprintf(b, `<text class="x" text-anchor="middle" x="%s" y="%v">%s</text>`+"\n", number(x),
			floor+17, html.EscapeString(t.Label))
	}
	for _, t := range c.Y.Ticks {
		y := c.Y.place(t.Value, floor, top)
		fmt.Fprintf(b, `<path class="grid" d="M%v %sH%v"/>`, left, number(y), end)
		text(b, "end", left-8, y+4, t.Label)
	}
	text(b, "start", 10, 14, c.Y.Label)
	text(b, "middle", (left+end)/2, c.Height-6, c.X.Label)
	fmt.Fprintf(b, `<path class="axis" d="M%v %vV%vH%v"/>`+"\n", left, top, floor, end)
	if c.Time {
		fmt.Fprintf(b, `<svg class="data" x="%[1]v" y="%[2]v" width="%[3]v" height="%[4]v" viewBox="`+
			`%[1]v %[2]v %[3]v %[4]v" preserveAspectRatio="none" data-from="%.0[5]f" data-to="%.0[6]f">`,
			left, top, end-left, floor-top, c.X.Min, c.X.Max)
		defer b.WriteString("</svg>\n")
	}
	for _, l := range c.Layers {
		var points []Point
		for _, p := range l.Points {
			points = append(points, Point{c.X.place(p.X, left, end), c.Y.place(p.Y, floor, top)})
		}
		l.write(b, points, floor)
	}
	for _, v := range c.Values {
		x, to := c.X.place(max(v.From, c.X.Min), left, end), c.X.place(min(v.To, c.X.Max), left, end)
		fmt.Fprintf(b, `<rect class="value" x="%s" y="%v" width="%s" height="%v"><title>%s</title>`+
			"</rect>\n", number(x), top, number(to-x), floor-top, html.EscapeString(v.Text))
	}
}

// writeLegend writes an entry for each layer with a name, in as many rows as they need, and returns
// where the data begins below them.
func (c *Chart) writeLegend(b *strings.Builder) (top float64) {
	start := max(left+16, 10+textWidth(c.Y.Label)+24)
	x, y := start, 10.0
	for _, l := range c.Layers {
		if l.Name == "" {
			continue
		}
		width := 32 + textWidth(l.Name)
		if x > start && x+width > c.Width-right {
			x, y = start, y+row
		}
		l.Radii = nil
		l.write(b, []Point{{x, y}, {x + 12, y}, {x + 24, y}}, y+5)
		text(b, "start", x+32, y+4, l.Name)
		x += width + 24
	}
	return above + y - 10
}

// textWidth returns about how wide a text is.
func textWidth(s string) float64 { return 7 * float64(utf8.RuneCountInString(s)) }

// place returns the pixel of a value.
func (a *Axis) place(v, from, to float64) float64 {
	low, high := a.Min, a.Max
	if a.Log {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	return from + (to-from)*(v-low)/(high-low)
}

// write writes the layer with its points in pixels. An area ends at the floor.
func (l *Layer) write(b *strings.Builder, points []Point, floor float64) {
	if len(points) == 0 {
		return
	}
	switch l.Shape {
	case Line:
		l.writeLine(b, points)
	case Marked:
		l.writeLine(b, points)
		l.writeDots(b, points)
	case Area:
		fmt.Fprintf(b, `<path class="area %s" d="%sV%sH%sZ"/>`, l.Class, path(points),
			number(floor), number(points[0].X))
	case Dots:
		l.writeDots(b, points)
	case Crosses:
		fmt.Fprintf(b, `<path class="cross %s" d="`, l.Class)
		for _, p := range points {
			fmt.Fprintf(b, "M%s %sl5 5m0-5l-5 5", number(p.X-2.5), number(p.Y-2.5))
		}
		b.WriteString(`"/>`)
	case Labels:
		for i, p := range points {
			fmt.Fprintf(b, `<text class="label" text-anchor="middle" x="%s" y="%s">%s</text>`, number(p.X),
				number(p.Y+22), html.EscapeString(l.Texts[i]))
		}
	}
	b.WriteString("\n")
}

func (l *Layer) writeLine(b *strings.Builder, points []Point) {
	fmt.Fprintf(b, `<path class="line %s" d="%s"/>`, l.Class, path(points))
}

func (l *Layer) writeDots(b *strings.Builder, points []Point) {
	for i, p := range points {
		radius := 3.0
		if l.Radii != nil {
			radius = l.Radii[i]
		}
		fmt.Fprintf(b, `<circle class="dot %s" cx="%s" cy="%s" r="%s"/>`, l.Class, number(p.X),
			number(p.Y), number(radius))
	}
}

// path returns the commands that draw a line.
func path(points []Point) string {
	var b strings.Builder
	var x, y string
	for i, p := range points {
		lastX, lastY := x, y
		x, y = number(p.X), number(p.Y)
		switch {
		case i == 0:
			b.WriteString("M" + x + " " + y)
		case y == lastY:
			b.WriteString("H" + x)
		case x == lastX:
			b.WriteString("V" + y)
		default:
			b.WriteString("L" + x + " " + y)
		}
	}
	return b.String()
}

// text writes a text that has its start, middle or end at a point.
func text(b *strings.Builder, anchor string, x, y float64, s string) {
	if s != "" {
		fmt.Fprintf(b, `<text text-anchor="%s" x="%s" y="%s">%s</text>`+"\n", anchor, number(x),
			number(y), html.EscapeString(s))
	}
}

// number writes a pixel with one decimal.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
