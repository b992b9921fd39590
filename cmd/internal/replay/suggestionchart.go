package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/internal/svgchart"
)

// clientsChart draws the bursts over the rates, for shares of the clients, and marks the suggested
// limit.
func (s *Suggestion) clientsChart() svgchart.Chart {
	c := s.chart("Least burst with which at most a share of the clients is ever refused",
		func(r *RateBursts) []ShareBurst { return r.Clients })
	if l := s.Limit; l != nil {
		at := []svgchart.Point{{X: l.rate.approximate(), Y: float64(l.Burst)}}
		text := fmt.Sprintf("%s, burst %s", l.Rate, grouped(l.Burst))
		c.Layers = append(c.Layers,
			svgchart.Layer{Name: "suggested", Class: "suggested", Shape: svgchart.Dots, Points: at,
				Radii: []float64{6}},
			svgchart.Layer{Shape: svgchart.Labels, Points: at, Texts: []string{text}})
		c.Text += ". Suggested is " + text
	}
	return c
}

// requestsChart draws the bursts over the rates, for shares of the requests.
func (s *Suggestion) requestsChart() svgchart.Chart {
	return s.chart("Burst with which at most a share of the requests is refused",
		func(r *RateBursts) []ShareBurst { return r.Requests })
}

// chart draws a line for each share, from the lowest rate to the highest. Both axes are
// logarithmic.
func (s *Suggestion) chart(title string, bursts func(*RateBursts) []ShareBurst) svgchart.Chart {
	c := newChart(title, "burst")
	rates := slices.Clone(s.Rates)
	slices.SortStableFunc(rates, func(a, b RateBursts) int {
		return cmp.Compare(a.rate.approximate(), b.rate.approximate())
	})
	low, high := rates[0].rate.approximate(), rates[len(rates)-1].rate.approximate()
	c.X = svgchart.Axis{Label: "tokens a second", Min: powerBelow(low), Log: true}
	c.X.Max = max(10*c.X.Min, powerAbove(high))
	c.Y.Log, c.Y.Min, c.Y.Max = true, 1, 10
	texts := make([]string, len(rates))
	for i, share := range s.share.columns() {
		line := svgchart.Layer{Name: "at most " + share.String(), Class: fmt.Sprintf("share-%d", i)}
		if share == s.share {
			line.Class += " chosen"
		}
		for j := range rates {
			burst := bursts(&rates[j])[i].Burst
			texts[j] += fmt.Sprintf("; %s: %s", share, burstText(burst))
			if burst > 0 {
				line.Points = append(line.Points,
					svgchart.Point{X: rates[j].rate.approximate(), Y: float64(burst)})
				c.Y.Max = max(c.Y.Max, powerAbove(float64(burst)))
			}
		}
		if line.Points != nil {
			c.Layers = append(c.Layers, line)
		}
	}
	c.X.Ticks, c.Y.Ticks = powerTicks(c.X.Min, c.X.Max), powerTicks(c.Y.Min, c.Y.Max)
	from := c.X.Min
	for j, r := range rates {
		to := c.X.Max
		if j+1 < len(rates) { // up to the middle of both, as they are drawn
			to = math.Sqrt(r.rate.approximate() * rates[j+1].rate.approximate())
		}
		c.Values = append(c.Values, svgchart.Value{From: from, To: to,
			Text: r.Rate + ", burst by share; " + strings.TrimPrefix(texts[j], "; ")})
		from = to
	}
	return c
}
