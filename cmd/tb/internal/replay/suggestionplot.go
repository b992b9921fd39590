package replay

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// clientsChart draws the bursts over the rates, for shares of the clients.
func (s *Suggestion) clientsChart(th *theme) (chart, error) {
	return s.chart(th, "Least burst with which at most a share of the clients is ever refused",
		func(r *RateBursts) []ShareBurst { return r.Clients })
}

// requestsChart draws the bursts over the rates, for shares of the requests.
func (s *Suggestion) requestsChart(th *theme) (chart, error) {
	return s.chart(th, "Burst with which at most a share of the requests is refused",
		func(r *RateBursts) []ShareBurst { return r.Requests })
}

// chart draws a line for each share. Both axes are logarithmic.
func (s *Suggestion) chart(
	th *theme, title string, bursts func(*RateBursts) []ShareBurst,
) (chart, error) {
	c := newChart(th, title, "tokens a second", "burst")
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
		line.Color, line.Width, line.Dashes = th.shares[i], vg.Points(1.5), plotutil.Dashes(i)
		c.Add(line)
		c.legend.Add("at most "+share.String(), line)
	}
	c.X.Min, c.Y.Max = powerBelow(c.X.Min), powerAbove(c.Y.Max)
	c.X.Max = max(10*c.X.Min, powerAbove(c.X.Max))
	return c, nil
}
