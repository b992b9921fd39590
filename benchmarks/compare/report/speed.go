package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// compared are the contenders of the picture at the top of README.md, from the bottom: the limiters
// that applications use, and this one.
var compared = []struct{ impl, name string }{
	{"httprate", "httprate"},
	{"ulule", "ulule/limiter"},
	{"throttled", "throttled"},
	{"xtime-lru", "rate in golang-lru"},
	{"xtime-syncmap", "rate in sync.Map"},
	{"cas", "ratelimit"},
}

// The colours can be read on a white and on a black page.
var (
	ours  = color.NRGBA{R: 0x2d, G: 0xa4, B: 0x4e, A: 0xff}
	other = color.NRGBA{R: 0x76, G: 0x83, B: 0x90, A: 0xff}
)

// bars shows the median of each contender in a query of one column.
type bars struct {
	query
	title string
}

func (p bars) plot(raw *results) (*plot.Plot, error) {
	g, err := raw.grid(p.query)
	if err != nil {
		return nil, err
	}
	chart := plot.New()
	chart.BackgroundColor = nil
	chart.Title.Text = p.title
	chart.HideX()
	var names, texts []string
	var ends plotter.XYs
	for i, c := range compared {
		m, ok := g.median(c.impl, g.cols[0])
		if !ok {
			return nil, fmt.Errorf("%s has no result", c.impl)
		}
		bar := &plotter.BarChart{
			Values: plotter.Values{m.Center * 1e9}, Width: vg.Points(10),
			Color: other, Horizontal: true, XMin: float64(i),
		}
		if c.impl == "cas" {
			bar.Color = ours
		}
		chart.Add(bar)
		names = append(names, c.name+" ")
		texts = append(texts, " "+format(m.Center, "sec/op"))
		ends = append(ends, plotter.XY{X: m.Center * 1e9, Y: float64(i)})
	}
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: ends, Labels: texts})
	if err != nil {
		return nil, err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].YAlign = draw.YCenter
		labels.TextStyle[i].Color = other
	}
	chart.Add(labels)
	chart.NominalY(names...)
	chart.X.Max *= 1.15 // with room for the last label
	chart.Title.TextStyle.Color, chart.Y.Tick.Label.Color = other, other
	chart.Y.Color, chart.Y.Width = other, 0
	return chart, nil
}

var (
	aGrant   = allow("/load:grant /keys:1 /par:1", "")
	aRefusal = allow("/load:refuse /par:64", "")
)

// inShort is a number at the top of README.md: the time of a decision, and of x/time/rate.
func inShort(decision string, q query) func(*results) (string, error) {
	return func(raw *results) (string, error) {
		g, err := raw.grid(q)
		if err != nil {
			return "", err
		}
		ns := func(impl string) string {
			s, _ := g.median(impl, g.cols[0])
			return format(s.Center, "sec/op")
		}
		return fmt.Sprintf("%s takes **%s ns**, and %s with x/time/rate in a sync.Map\n"+
			"([%s, %s, %s rounds, commit %s](BENCHMARKS.md)).\n", decision, ns("cas"), ns("xtime-syncmap"),
			raw.config("cpu"), raw.config("go"), raw.config("rounds"), raw.config("commit")), nil
	}
}
