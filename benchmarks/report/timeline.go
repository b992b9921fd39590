package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/simulate"
	"github.com/seed-181794aa/ratelimit/internal/svgchart"
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

// curve is a line with a value for each second. Its name is the name of its look.
type curve struct {
	name   string
	values []float64
}

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
	target := curve{name: "target"}
	for range latencies[0].values {
		target.values = append(target.values, float64(scenario.Target.Milliseconds()))
	}
	left := curves("Rate: "+scenario.Title, "requests a second", rates, t.top)
	right := curves("Latency in each second", "p99, ms", append(latencies, target),
		float64(scenario.Patience.Milliseconds()))
	return drawing([]svgchart.Chart{left, right})
}

// rateCurves returns the rate of each client, as the mean of each second.
func rateCurves(name string, r *simulate.Run) (all []curve) {
	const perSecond = int(time.Second / simulate.Step)
	for client, rates := range r.Rates {
		c := curve{name, make([]float64, len(rates)/perSecond)}
		for i := range c.values {
			for _, rate := range rates[i*perSecond : (i+1)*perSecond] {
				c.values[i] += rate / float64(perSecond)
			}
		}
		if len(r.Rates) > 1 {
			c.name = fmt.Sprintf("client-%d", client+1)
		}
		all = append(all, c)
	}
	return all
}

func p99Curve(name string, r *simulate.Run) curve {
	c := curve{name: name}
	for _, p99 := range r.P99() {
		c.values = append(c.values, p99.Seconds()*1000)
	}
	return c
}

func capacityCurve(s *simulate.Scenario) curve {
	c := curve{name: "capacity"}
	for _, p := range s.Phases {
		for range int(p.Length.Seconds()) {
			c.values = append(c.values, s.Capacity(p))
		}
	}
	return c
}

// curves returns a chart of curves over time, the first on top. The y axis ends at a value.
func curves(title, y string, all []curve, top float64) svgchart.Chart {
	chart := newPanel(title, "seconds", y)
	chart.X.Max, chart.Y.Max = float64(len(all[0].values)), top
	for second := 0; second <= len(all[0].values); second += 30 {
		chart.X.Ticks = append(chart.X.Ticks,
			svgchart.Tick{Value: float64(second), Label: strconv.Itoa(second)})
	}
	for i := range 5 {
		v := top * float64(i) / 4
		chart.Y.Ticks = append(chart.Y.Ticks,
			svgchart.Tick{Value: v, Label: thousands(strconv.FormatFloat(v, 'f', -1, 64))})
	}
	for _, c := range slices.Backward(all) {
		line := svgchart.Layer{Name: c.name, Class: c.name}
		for second, v := range c.values {
			line.Points = append(line.Points, svgchart.Point{X: float64(second), Y: min(v, top)})
		}
		chart.Layers = append(chart.Layers, line)
	}
	return chart
}
