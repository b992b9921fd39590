package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart is a drawing that a document shows: plots of one size, side by side.
type chart struct {
	name, file string // of the raw results
	size       vg.Point
	plots      []drawing
}

type drawing interface {
	plot(raw *results) (*plot.Plot, error)
}

var large = vg.Point{X: 14 * vg.Centimeter, Y: 10 * vg.Centimeter}

var charts = []chart{
	{"speed", bench, vg.Point{X: 11 * vg.Centimeter, Y: 4.5 * vg.Centimeter}, []drawing{
		bars{aGrant, "a grant, ns"},
		bars{aRefusal, "a refusal among 64 goroutines, ns"},
	}},
	{"goroutines", bench, large, []drawing{
		lines{allow("/load:grant /keys:1", "/par@num"),
			"Grants, one key", "goroutines (2 cores)", "ns per decision", 1e9},
		lines{allow("/load:refuse", "/par@num"),
			"Refusals, one key", "goroutines (2 cores)", "ns per decision", 1e9},
	}},
	{"flood", bench, large, []drawing{
		lines{query{".name:Flood /calls:(400k OR 800k OR 1200k OR 1600k OR 2M)", "/impl",
			"/calls@num", []string{"heap-B"}},
			"A flood of new keys against a bound of 100,000", "new keys so far",
			"live heap, MB", 1e-6},
	}},
	{"redis-goroutines", inRedis, large, []drawing{
		lines{allow("/load:hot_key", "/par@num"),
			"Grants in Redis, one key", "goroutines (2 cores)", "ns per decision", 1e9},
		lines{allow("/load:per_user", "/par@num"),
			"Grants in Redis, a key for each", "goroutines (2 cores)", "ns per decision", 1e9},
	}},
	{"redis-processes", inRedis, large, []drawing{
		lines{query{".name:Processes", "/impl", "/procs@num", perOp},
			"Grants in Redis, one key", "processes with 64 goroutines", "ns per decision", 1e9},
		lines{query{".name:OverGrant", "/impl", "/procs@num", race[:1]},
			"A bucket that allows 40 tokens", "processes with 64 goroutines", "tokens granted", 1},
	}},
}

func (c chart) path() string { return resultsDir + "/" + c.name + ".svg" }

func (c chart) svg(raw *results) ([]byte, error) {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	row := make([]*plot.Plot, len(c.plots))
	for i, p := range c.plots {
		var err error
		if row[i], err = p.plot(raw); err != nil {
			return nil, err
		}
	}
	canvas := vgsvg.New(vg.Length(len(row))*c.size.X, c.size.Y)
	tiles := draw.Tiles{Rows: 1, Cols: len(row), PadX: vg.Centimeter / 2}
	for i, tile := range plot.Align([][]*plot.Plot{row}, tiles, draw.New(canvas))[0] {
		row[i].Draw(tile)
	}
	var b bytes.Buffer
	_, err := canvas.WriteTo(&b)
	family := []byte("font-family:Liberation Sans")
	return bytes.ReplaceAll(b.Bytes(), family, append(family, ",Arial,sans-serif"...)), err
}

// lines shows the medians of each contender over the columns of a query. This module's limiter has
// a thick line and the first colour. The others have a colour, dashes and marks by their order in
// the results.
type lines struct {
	query
	title, x, y string
	scale       float64 // from the unit of the results to the unit of the axis
}

func (p lines) plot(raw *results) (*plot.Plot, error) {
	g, err := raw.grid(p.query)
	if err != nil {
		return nil, err
	}
	chart := plot.New()
	chart.Title.Text, chart.X.Label.Text, chart.Y.Label.Text = p.title, p.x, p.y
	chart.NominalX(g.cols...)
	chart.X.Min, chart.X.Max = -0.2, 1.4*float64(len(g.cols)) // with room for the legend
	chart.Y.Scale, chart.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(logTicks)
	chart.Legend.Top = true
	chart.Add(plotter.NewGrid())
	ours := func(row string) bool { return row == "cas" || row == "tb" }
	others := slices.DeleteFunc(slices.Clone(g.rows), ours)
	for _, row := range g.rows {
		look := 1 + slices.Index(others, row)
		var points plotter.XYs
		for i, col := range g.cols {
			if m, ok := g.median(row, col); ok && m.Center <= 0 {
				return nil, fmt.Errorf("%s: %v in %q is not positive", row, m.Center, col)
			} else if ok {
				points = append(points, plotter.XY{X: float64(i), Y: m.Center * p.scale})
			}
		}
		if points == nil {
			continue
		}
		line, marks, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Dashes = plotutil.Color(look), plotutil.Dashes(look)
		marks.Color, marks.Shape = line.Color, plotutil.Shape(look+look/len(plotutil.DefaultColors))
		if ours(row) {
			line.Width = vg.Points(3)
		}
		chart.Add(line, marks)
		chart.Legend.Add(row, line, marks)
	}
	return chart, nil
}

// logTicks labels 1, 2 and 5 times each power of ten.
func logTicks(least, most float64) []plot.Tick {
	ticks := slices.CompactFunc(plot.LogTicks{Prec: -1}.Ticks(least, most), func(a, b plot.Tick) bool {
		return a.Value == b.Value
	})
	for i := range ticks {
		text := strconv.FormatFloat(ticks[i].Value, 'f', -1, 64)
		if ticks[i].Label = ""; strings.ContainsAny(strings.Trim(text, "0."), "125") {
			ticks[i].Label = thousands(text)
		}
	}
	return ticks
}
