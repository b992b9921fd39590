package replay

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// shareColors are the colours of the shares, the least share first (the palette of Okabe and Ito).
var shareColors = []color.Color{
	color.Black,
	color.RGBA{R: 0, G: 114, B: 178, A: 255},
	color.RGBA{R: 86, G: 180, B: 233, A: 255},
	color.RGBA{R: 0, G: 158, B: 115, A: 255},
	color.RGBA{R: 230, G: 159, B: 0, A: 255},
	color.RGBA{R: 213, G: 94, B: 0, A: 255},
}

// writeSVG draws the bursts over the rates: for shares of the clients and, if there are any, for
// shares of the requests.
func (s *Suggestion) writeSVG(w io.Writer) error {
	clients, err := s.chart("Least burst with which at most a share of the clients is ever refused",
		func(r *RateBursts) []ShareBurst { return r.Clients })
	if err != nil {
		return err
	}
	if len(s.Rates[0].Requests) == 0 {
		return writeCharts(w, clients)
	}
	requests, err := s.chart("Burst with which at most a share of the requests is refused",
		func(r *RateBursts) []ShareBurst { return r.Requests })
	if err != nil {
		return err
	}
	return writeCharts(w, clients, requests)
}

// chart draws a line for each share. Both axes are logarithmic.
func (s *Suggestion) chart(title string, bursts func(*RateBursts) []ShareBurst) (chart, error) {
	c := newChart(title, "tokens a second", "burst")
	c.X.Scale, c.Y.Scale = plot.LogScale{}, plot.LogScale{}
	c.X.Tick.Marker, c.Y.Tick.Marker = powerTicks{}, powerTicks{}
	c.X.Min, c.X.Max, c.Y.Min, c.Y.Max = math.Inf(1), 0, 1, 10
	for i, share := range s.share.columns() {
		var points plotter.XYs
		for j := range s.Rates {
			r := &s.Rates[j]
			x, y := r.rate.approximate(), float64(bursts(r)[i].Burst)
			c.X.Min, c.X.Max, c.Y.Max = min(c.X.Min, x), max(c.X.Max, x), max(c.Y.Max, y)
			if y > 0 {
				points = append(points, plotter.XY{X: x, Y: y})
			}
		}
		slices.SortFunc(points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return c, err
		}
		line.Color, line.Width = shareColors[i], vg.Points(1.2)
		c.Add(line)
		c.legend.Add("at most "+share.String(), line)
	}
	c.X.Min, c.Y.Max = powerBelow(c.X.Min), powerAbove(c.Y.Max)
	c.X.Max = max(10*c.X.Min, powerAbove(c.X.Max))
	return c, nil
}

// powerTicks marks the powers of ten on a logarithmic axis.
type powerTicks struct{}

// Ticks implements plot.Ticker.
func (powerTicks) Ticks(first, last float64) (all []plot.Tick) {
	for v := powerBelow(first); v <= last*(1+1e-9); v *= 10 {
		label := fmt.Sprint(v)
		if v >= 1 {
			label = grouped(uint64(v))
		}
		all = append(all, plot.Tick{Value: v, Label: label})
	}
	return all
}

// powerBelow returns the greatest power of ten that is not above v.
func powerBelow(v float64) float64 { return math.Pow(10, math.Floor(math.Log10(v)+1e-9)) }

// powerAbove returns the least power of ten that is not below v.
func powerAbove(v float64) float64 { return math.Pow(10, math.Ceil(math.Log10(v)-1e-9)) }
