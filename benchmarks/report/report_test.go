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
)

const root = "../.."

func TestGeneratedFilesAreUpToDate(t *testing.T) {
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
			t.Errorf("%s differs from what is generated: run scripts/report", name)
		}
	}
}

func TestDocumentsShowEveryChart(t *testing.T) {
	var shown []string
	for _, name := range []string{document, readme} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\((\S+\.svg)\)`).FindAllSubmatch(text, -1) {
			shown = append(shown, string(m[1]))
		}
	}
	var made []string
	for _, c := range charts {
		made = append(made, c.path())
	}
	slices.Sort(shown)
	slices.Sort(made)
	if !slices.Equal(shown, made) {
		t.Errorf("the documents show %v, want %v", shown, made)
	}
}

func TestFillReplacesTables(t *testing.T) {
	inProcess, err := read(filepath.Join(root, resultsDir, bench))
	if err != nil {
		t.Fatal(err)
	}
	raw := map[string]*results{bench: inProcess}
	text, err := fill([]byte("a\n<!-- generated: machine -->\nold\n<!-- end -->\nb\n"), raw)
	if err != nil || !bytes.Contains(text, []byte("-->\nMeasured on ")) ||
		bytes.Contains(text, []byte("old")) {
		t.Errorf("fill: %s, %v", text, err)
	}
	if _, err := fill([]byte("<!-- generated: other -->\n<!-- end -->\n"), raw); err == nil {
		t.Error("fill accepts a table that does not exist")
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
		{122.7, "B/key", "123"},
		{0, "allocs/op", "0"},
		{0.0324, "trips/op", "0.0324"},
		{40.553, "trips/op", "40.6"},
	} {
		if got := format(c.v, c.unit); got != c.want {
			t.Errorf("format(%v, %s) = %s, want %s", c.v, c.unit, got, c.want)
		}
	}
}
