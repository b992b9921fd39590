package algorithm

import (
	"fmt"
	"strconv"

	"github.com/seed-181794aa/ratelimit/internal/svgchart"
)

// The rows of the requests are below the curve, in tokens.
const grantedRow, refusedRow = -2.5, -5.0

// The colours are readable on a light page and on a dark one. The page shows through.
const colors = `.chart { color: #787878; }
.chart .granted { color: #2d8ccd; }
.chart .refused { color: #dd6e1e; }
.chart .edge { stroke-dasharray: 4 3; opacity: 0.5; }
`

// drawScene returns a picture with a chart for each run.
func drawScene(all []run) []byte {
	var charts []svgchart.Chart
	for _, r := range all {
		charts = append(charts, r.chart())
	}
	return svgchart.Drawing(charts, 2, colors)
}

// chart draws the requests of a run, and how many were granted in the last window of 2 s, with
// lines at the edges of windows, at the count and at twice the count.
func (r *run) chart() svgchart.Chart {
	window := 2 * second
	grants := r.grants()
	c := svgchart.Chart{
		Title: fmt.Sprintf("%s: at most %d in 0.2 s, %d in 2 s",
			r.title(), most(grants, window/10), most(grants, window)),
		Width: 490, Height: 210,
		X: svgchart.Axis{Label: "seconds", Min: 1.5, Max: 6},
		Y: svgchart.Axis{Label: "in the last 2 s", Min: -6, Max: 22, Ticks: []svgchart.Tick{
			{Value: refusedRow, Label: "refused"}, {Value: grantedRow, Label: "granted"},
			{Value: 0, Label: "0"}, {Value: 10, Label: "10"}, {Value: 20, Label: "20"},
		}},
	}
	c.Text = c.Title
	for x := 2; x <= 6; x++ {
		c.X.Ticks = append(c.X.Ticks, svgchart.Tick{Value: float64(x), Label: strconv.Itoa(x)})
	}
	for _, line := range [][]svgchart.Point{
		{{X: 2, Y: -6}, {X: 2, Y: 22}}, {{X: 4, Y: -6}, {X: 4, Y: 22}},
		{{X: 1.5, Y: 10}, {X: 6, Y: 10}}, {{X: 1.5, Y: 20}, {X: 6, Y: 20}},
	} {
		c.Layers = append(c.Layers, svgchart.Layer{Class: "edge", Points: line})
	}
	granted := svgchart.Layer{Class: "granted", Shape: svgchart.Dots}
	refused := svgchart.Layer{Class: "refused", Shape: svgchart.Crosses}
	for i, result := range r.results {
		if x := seconds(r.instants[i]); result.Granted {
			granted.Points = append(granted.Points, svgchart.Point{X: x, Y: grantedRow})
		} else {
			refused.Points = append(refused.Points, svgchart.Point{X: x, Y: refusedRow})
		}
	}
	curve := svgchart.Layer{
		Class: "granted", Points: inWindow(grants, window, r.instants[0], 3*window),
	}
	c.Layers = append(c.Layers, curve, granted, refused)
	return c
}

// inWindow returns, as a curve in steps, how many grants were in the last window at each instant.
func inWindow(grants []grant, window, from, to uint64) (curve []svgchart.Point) {
	const step = second / 200
	for now := from; now <= to; now += step {
		count := 0
		for _, g := range grants {
			if g.instant <= now && now < g.instant+window {
				count++
			}
		}
		y := float64(count)
		if last := len(curve) - 1; last < 0 || curve[last].Y != y {
			if last >= 0 {
				curve = append(curve, svgchart.Point{X: seconds(now), Y: curve[last].Y})
			}
			curve = append(curve, svgchart.Point{X: seconds(now), Y: y})
		}
	}
	return append(curve, svgchart.Point{X: seconds(to), Y: curve[len(curve)-1].Y})
}

func seconds(instant uint64) float64 { return float64(instant) / 1e9 }
