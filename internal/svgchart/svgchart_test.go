package svgchart_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/internal/svgchart"
)

func TestPointsArePlacedByTheAxes(t *testing.T) {
	type points = []svgchart.Point
	c := svgchart.Chart{
		Width: 216, Height: 166, // 100 by 100 for the data
		X: svgchart.Axis{Min: 10, Max: 20, Ticks: []svgchart.Tick{{Value: 15, Label: "x"}}},
		Y: svgchart.Axis{Min: 1, Max: 100, Log: true, Ticks: []svgchart.Tick{{Value: 10, Label: "y"}}},
		Layers: []svgchart.Layer{
			{Class: "a", Points: points{{10, 1}, {15, 1}, {15, 10}, {20, 100}}},
			{Class: "b", Shape: svgchart.Area, Points: points{{10, 10}, {20, 10}}},
			{Class: "c", Shape: svgchart.Dots, Points: points{{11, 100}}, Radii: []float64{2.5}},
			{Class: "d", Shape: svgchart.Crosses, Points: points{{12, 100}}},
			{Shape: svgchart.Labels, Points: points{{13, 100}}, Texts: []string{"here"}},
			{Class: "e", Shape: svgchart.Marked, Points: points{{14, 100}, {14, 10}}},
			{Class: "none"},
		},
		Values: []svgchart.Value{{From: 5, To: 12, Text: "value"}},
	}
	svg := c.SVG()
	for _, want := range []string{
		`<path class="line a" d="M80 126H130V76L180 26"/>`,
		`<path class="area b" d="M80 76H180V126H80Z"/>`,
		`<circle class="dot c" cx="90" cy="26" r="2.5"/>`,
		`<path class="cross d" d="M97.5 23.5l5 5m0-5l-5 5"/>`,
		`<text class="label" text-anchor="middle" x="110" y="48">here</text>`,
		`<path class="line e" d="M120 26V76"/><circle class="dot e" cx="120" cy="26" r="3"/>` +
			`<circle class="dot e" cx="120" cy="76" r="3"/>`,
		`<path class="grid" d="M130 26V126"/>`,
		`<text class="x" text-anchor="middle" x="130" y="143">x</text>`,
		`<path class="grid" d="M80 76H180"/><text text-anchor="end" x="72" y="80">y</text>`,
		`<rect class="value" x="80" y="26" width="20" height="100"><title>value</title></rect>`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	if strings.Contains(svg, "none") {
		t.Errorf("a layer without points is drawn:\n%s", svg)
	}
}

// The data begins below a legend that needs two rows.
func TestLegendHasRows(t *testing.T) {
	c := svgchart.Chart{
		Width: 316, Height: 184, X: svgchart.Axis{Max: 1}, Y: svgchart.Axis{Max: 1},
	}
	for _, name := range []string{"first", "second", "third"} {
		points := []svgchart.Point{{}, {X: 1, Y: 1}}
		c.Layers = append(c.Layers, svgchart.Layer{Name: name, Points: points})
	}
	svg := c.SVG()
	for _, want := range []string{
		`x="128" y="14">first</text>`, `x="219" y="14">second</text>`, `x="128" y="32">third</text>`,
		`d="M80 144L280 44"`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
}

func TestTextsAreEscaped(t *testing.T) {
	const text = `<script>&"'`
	c := svgchart.Chart{
		Title: text, Text: text, Width: 300, Height: 200,
		X:      svgchart.Axis{Label: text, Max: 1, Ticks: []svgchart.Tick{{Label: text}}},
		Y:      svgchart.Axis{Label: text, Max: 1},
		Layers: []svgchart.Layer{{Name: text, Points: []svgchart.Point{{}}}},
		Values: []svgchart.Value{{To: 1, Text: text}},
	}
	drawing := string(svgchart.Drawing([]svgchart.Chart{c, c, c}, 2, ".chart .page { fill: white; }"))
	for _, svg := range []string{c.SVG(), drawing} {
		shown := 0
		for dec := xml.NewDecoder(strings.NewReader(svg)); ; {
			token, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, svg)
			}
			if data, ok := token.(xml.CharData); ok {
				shown += strings.Count(string(data), text)
			}
		}
		if shown < 5 {
			t.Errorf("%d texts in\n%s", shown, svg)
		}
	}
	if !strings.Contains(drawing, `viewBox="0 0 600 456"`) {
		t.Errorf("the drawing has another size:\n%.300s", drawing)
	}
}
