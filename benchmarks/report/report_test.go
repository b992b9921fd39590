package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

const root = "../.."

// What is generated must be what the committed raw results make: the remedy is
// scripts/report.
func TestDocumentShowsTheRawResults(t *testing.T) {
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if strings.HasSuffix(name, ".svg") && runtime.GOARCH != "amd64" {
			continue // elsewhere the last digit of a coordinate may differ
		}
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the raw results make: run scripts/report", name)
		}
	}
}

// Every chart is shown, and every chart that is shown exists.
func TestDocumentShowsTheCharts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	var shown, made []string
	for _, m := range regexp.MustCompile(`\((\S+)\.svg\)`).FindAllSubmatch(text, -1) {
		shown = append(shown, string(m[1]))
	}
	for _, c := range charts {
		made = append(made, resultsDir+"/"+c.name)
	}
	slices.Sort(shown)
	slices.Sort(made)
	if !slices.Equal(shown, made) {
		t.Errorf("shown are %v, made are %v", shown, made)
	}
}

// Every contender of the raw results has a look of its own.
func TestLooksDiffer(t *testing.T) {
	raw, err := read(filepath.Join(root, rawResults))
	if err != nil {
		t.Fatal(err)
	}
	g, err := raw.grid(query{"(.name:Allow OR .name:Tail)", "/impl", ".name", perOp})
	if err != nil {
		t.Fatal(err)
	}
	for _, impl := range g.rows {
		if _, ok := looks[impl]; !ok {
			t.Errorf("%s has no look", impl)
		}
	}
	type seen struct{ color, glyph any }
	by := make(map[seen]string)
	for impl, l := range looks {
		if impl == "none" {
			continue // never in one chart with the limiters' names but as their base line
		}
		key := seen{l.color, l.glyph}
		if other, ok := by[key]; ok {
			t.Errorf("%s and %s look alike", impl, other)
		}
		by[key] = impl
	}
}

func TestFillTellsWhichTablesHaveNoPlace(t *testing.T) {
	raw, err := read(filepath.Join(root, rawResults))
	if err != nil {
		t.Fatal(err)
	}
	one, two := tables["machine"], tables["grant"]
	missing := map[string]spec{"machine": one, "grant": two}
	text, err := fill([]byte("a\n<!-- generated: machine -->\n<!-- end -->\nb\n"), raw, missing)
	if err != nil || len(missing) != 1 || missing["grant"].head == "" {
		t.Errorf("missing are %v, %v", missing, err)
	}
	if !bytes.Contains(text, []byte("-->\n| | |\n")) {
		t.Errorf("no table in its place: %s", text)
	}
	unknown := "<!-- generated: unheard -->\n<!-- end -->\n"
	if _, err := fill([]byte(unknown), raw, missing); err == nil {
		t.Error("a table that does not exist is accepted")
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{47.04e-9, "sec/op", "47.0"},
		{540.6e-9, "sec/op", "541"},
		{0.0123, "p99-sec", "12,300,000"},
		{0.08, "gc-cpu-sec", "80"},
		{0.0804, "gc-cpu-sec", "80.4"},
		{122.7, "B/key", "123"},
		{0, "allocs/op", "0"},
		{0.5, "granted/op", "0.500"},
	} {
		if got := format(c.v, c.unit); got != c.want {
			t.Errorf("format(%v, %s) = %s, want %s", c.v, c.unit, got, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct{ heights, want []vg.Length }{
		{[]vg.Length{10, 50}, []vg.Length{10, 50}},
		{[]vg.Length{10, 12, 14}, []vg.Length{10, 20, 30}},
		{[]vg.Length{90, 95, 99}, []vg.Length{80, 90, 100}},
	} {
		got := slices.Clone(c.heights)
		if spread(got, 10, 100); !slices.Equal(got, c.want) {
			t.Errorf("spread(%v) = %v, want %v", c.heights, got, c.want)
		}
	}
}
