package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/seed-181794aa/ratelimit/internal/svgchart"
)

func (c chart) svg(raw *results) ([]byte, error) {
	var panels []svgchart.Chart
	for _, p := range c.panels {
		drawn, err := p.draw(raw)
		if err != nil {
			return nil, err
		}
		panels = append(panels, drawn)
	}
	return drawing(panels)
}

// drawing returns charts side by side. The class of each layer must have a look, and the looks in a
// chart must differ.
func drawing(panels []svgchart.Chart) ([]byte, error) {
	var names []string
	for _, p := range panels {
		seen := make(map[look]string)
		for _, l := range p.Layers {
			look, ok := looks[l.Class]
			if !ok {
				return nil, fmt.Errorf("%s has no look", l.Class)
			}
			if other, ok := seen[look]; ok {
				return nil, fmt.Errorf("%s and %s look alike", l.Class, other)
			}
			seen[look] = l.Class
			names = append(names, l.Class)
		}
	}
	slices.Sort(names)
	return svgchart.Drawing(panels, len(panels), style(slices.Compact(names))), nil
}

// newPanel returns a chart without data.
func newPanel(title, x, y string) svgchart.Chart {
	return svgchart.Chart{
		Title: title, Text: title, Width: 530, Height: 380,
		X: svgchart.Axis{Label: x}, Y: svgchart.Axis{Label: y},
	}
}

func (p panel) draw(raw *results) (svgchart.Chart, error) {
	all, columns, err := p.series(raw)
	c := newPanel(p.title, p.x, p.y)
	for i, name := range columns {
		c.X.Ticks = append(c.X.Ticks, svgchart.Tick{Value: float64(i), Label: name})
	}
	c.X.Min, c.X.Max = -0.3, float64(len(columns))-0.7
	least, most := math.Inf(1), 0.0
	for _, s := range slices.Backward(all) { // the first lines on top
		line := svgchart.Layer{Name: s.impl, Class: s.impl, Shape: svgchart.Marked}
		for i, x := range s.columns {
			line.Points = append(line.Points, svgchart.Point{X: x, Y: s.medians[i]})
		}
		least, most = min(least, slices.Min(s.medians)), max(most, slices.Max(s.medians))
		c.Layers = append(c.Layers, line)
	}
	c.Y.Log, c.Y.Ticks = true, logTicks(least, most)
	c.Y.Min, c.Y.Max = c.Y.Ticks[0].Value, c.Y.Ticks[len(c.Y.Ticks)-1].Value
	return c, err
}

// logTicks are at 1, 2 and 5 of each power of ten, from one that is not above least to one that is
// not below most.
func logTicks(least, most float64) (ticks []svgchart.Tick) {
	for power := math.Floor(math.Log10(least)); ; power++ {
		for _, step := range []float64{1, 2, 5} {
			v := step * math.Pow(10, power)
			label := thousands(strconv.FormatFloat(v, 'g', 12, 64))
			switch tick := (svgchart.Tick{Value: v, Label: label}); {
			case v <= least:
				ticks = []svgchart.Tick{tick}
			default:
				ticks = append(ticks, tick)
			}
			if v >= most && len(ticks) > 1 {
				return ticks
			}
		}
	}
}
