package replay

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/suggest"
)

// refusalCurve has the refusals of many bursts at each rate, as the page reads them.
type refusalCurve struct {
	// Clients and Requests are the numbers of all clients and requests, or if OneIn is above 1, of
	// about one in OneIn.
	Clients  int    `json:"clients"`
	Requests uint64 `json:"requests"`
	OneIn    uint64 `json:"one_in"`
	// Bursts ascend from 1.
	Bursts []uint64       `json:"bursts"`
	Rates  []rateRefusals `json:"rates"`
	// Rate and Burst are the indexes of the suggested limit, and 0 if there is none.
	Rate  int `json:"rate"`
	Burst int `json:"burst"`
}

// rateRefusals has the refusals of each burst at one rate.
type rateRefusals struct {
	Rate string `json:"rate"`
	// Clients has the number of clients that are refused at least once.
	Clients []uint64 `json:"clients"`
	// Requests has the number of requests that are refused. It is null if costs vary or are not whole,
	// and if there are too many requests to count the refused ones.
	Requests []uint64 `json:"requests"`
}

// newCurve returns the refusals at the rates of a suggestion, up to the greatest burst of its
// table.
func (s *Suggestion) newCurve(found *suggest.Result) *refusalCurve {
	c := &refusalCurve{
		Clients: len(found.Clients), Requests: found.Requests, OneIn: found.OneIn,
	}
	greatest := uint64(1)
	for i := range s.Rates {
		for _, b := range s.Rates[i].Clients {
			greatest = max(greatest, b.Burst)
		}
	}
	c.Bursts = burstsTo(greatest)
	if s.Limit != nil {
		i, found := slices.BinarySearch(c.Bursts, s.Limit.Burst)
		if !found {
			c.Bursts = slices.Insert(c.Bursts, i, s.Limit.Burst)
		}
		c.Rate, c.Burst = s.Limit.index, i
	}
	for i := range s.Rates {
		clients, requests := found.Refusals(i, c.Bursts)
		c.Rates = append(c.Rates, rateRefusals{s.Rates[i].Rate, clients, requests})
	}
	return c
}

// burstsTo returns bursts from 1 to greatest, each at most a tenth or 1 above the one before: about
// 200 up to the greatest burst of all.
func burstsTo(greatest uint64) (bursts []uint64) {
	for b := uint64(1); b < greatest; b += max(1, b/10) {
		bursts = append(bursts, b)
	}
	return append(bursts, greatest)
}

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
