package main

import (
	"fmt"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/seed-181794aa/ratelimit/internal/simulate"
)

// timeline is a drawing of one scenario: the rates and the p99 of some contenders over time.
type timeline struct {
	name, scenario string
	contenders     []string
	top            float64 // of the axis of rates
}

var everyContender = []string{"adapt", "AIMD", "Gradient2", "Vegas", "correlation", "CUBIC"}

var timelines = []timeline{
	{"adaptive-workers", "workers", everyContender, 1600},
	{"adaptive-speed", "speed", everyContender, 1600},
	{"adaptive-clients", "clients", []string{"adapt"}, 1600},
}

// curve is a line with a value for each second.
type curve struct {
	name   string
	look   look
	values []float64
}

var timelineLooks = map[string]look{
	"adapt":       {vermilion, draw.CircleGlyph{}, thick, nil},
	"AIMD":        {blue, draw.SquareGlyph{}, thin, nil},
	"Gradient2":   {green, draw.PyramidGlyph{}, thin, nil},
	"Vegas":       {green, draw.TriangleGlyph{}, thin, dashed},
	"correlation": {ochre, draw.RingGlyph{}, thin, nil},
	"CUBIC":       {purple, draw.CrossGlyph{}, thin, nil},
}

var (
	guideLine   = look{ink, draw.PlusGlyph{}, thin, dashed}
	clientLooks = []look{timelineLooks["adapt"], {blue, draw.SquareGlyph{}, thick, nil}}
)

func (t timeline) svg(c *comparison) ([]byte, error) {
	var rates, latencies []curve
	var scenario *simulate.Scenario
	for i := range c.scenarios {
		if c.scenarios[i].Name != t.scenario {
			continue
		}
		scenario = &c.scenarios[i]
		for j, contender := range c.contenders {
			for _, name := range t.contenders {
				if name == contender.Name {
					run := c.runs[i][j]
					rates = append(rates, rateCurves(name, run)...)
					latencies = append(latencies, p99Curve(name, run))
				}
			}
		}
	}
	if len(latencies) != len(t.contenders) {
		return nil, fmt.Errorf("%d of %d contenders", len(latencies), len(t.contenders))
	}
	rates = append(rates, capacityCurve(scenario))
	target := curve{"target", guideLine, nil}
	for range latencies[0].values {
		target.values = append(target.values, float64(scenario.Target.Milliseconds()))
	}
	left, err := curves("Rate: "+scenario.Title, "requests a second", rates)
	if err != nil {
		return nil, err
	}
	left.Y.Min, left.Y.Max = 0, t.top
	right, err := curves("Latency in each second", "p99, ms", append(latencies, target))
	if err != nil {
		return nil, err
	}
	right.Y.Min, right.Y.Max = 0, float64(scenario.Patience.Milliseconds())
	return drawing([]*plot.Plot{left, right})
}

// rateCurves returns the rate of each client, as the mean of each second.
func rateCurves(name string, r *simulate.Run) (all []curve) {
	const perSecond = int(time.Second / simulate.Step)
	for client, rates := range r.Rates {
		c := curve{name, timelineLooks[name], make([]float64, len(rates)/perSecond)}
		for i := range c.values {
			for _, rate := range rates[i*perSecond : (i+1)*perSecond] {
				c.values[i] += rate / float64(perSecond)
			}
		}
		if len(r.Rates) > 1 {
			c.name, c.look = fmt.Sprintf("client %d", client+1), clientLooks[client]
		}
		all = append(all, c)
	}
	return all
}

func p99Curve(name string, r *simulate.Run) curve {
	c := curve{name, timelineLooks[name], nil}
	for _, p99 := range r.P99() {
		c.values = append(c.values, p99.Seconds()*1000)
	}
	return c
}

func capacityCurve(s *simulate.Scenario) curve {
	c := curve{"capacity", guideLine, nil}
	for _, p := range s.Phases {
		for range int(p.Length.Seconds()) {
			c.values = append(c.values, s.Capacity(p))
		}
	}
	return c
}

// curves returns a plot of curves over time, the first on top.
func curves(title, y string, all []curve) (*plot.Plot, error) {
	pl := empty(title, "seconds", y)
	var ticks plot.ConstantTicks
	for second := 0; second <= len(all[0].values); second += 30 {
		ticks = append(ticks, plot.Tick{Value: float64(second), Label: strconv.Itoa(second)})
	}
	pl.X.Tick.Marker = ticks
	for i := range all {
		c := all[len(all)-1-i]
		points := make(plotter.XYs, len(c.values))
		for second, v := range c.values {
			points[second] = plotter.XY{X: float64(second), Y: v}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width, line.Dashes = c.look.color, c.look.width, c.look.dash
		pl.Add(line)
		pl.Legend.Add(c.name, line)
	}
	return pl, nil
}
