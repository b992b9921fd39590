package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchproc"
)

// results are the lines of a file of raw results. A benchmark that failed has no line.
type results struct {
	lines   []*benchfmt.Result
	failed  int
	changes string // of the measured code since, as a sentence; "" if it is not told
}

// failure matches the failure of a sub-benchmark, but not of its parent.
var failure = regexp.MustCompile(`--- FAIL: \S+/`)

func read(name string) (*results, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	raw := &results{failed: len(failure.FindAll(text, -1))}
	reader, broken := benchfmt.NewReader(bytes.NewReader(text), name), 0
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.Result:
			raw.lines = append(raw.lines, record.Clone())
		case *benchfmt.SyntaxError:
			if broken++; broken > raw.failed {
				return nil, record
			}
		}
	}
	if err := reader.Err(); err != nil {
		return nil, err
	}
	if len(raw.lines) == 0 {
		return nil, fmt.Errorf("%s: no results", name)
	}
	return raw, nil
}

// query selects results. Filter, row and col are in the language of benchproc. Each column
// is repeated for each unit.
type query struct {
	filter, row, col string
	units            []string
}

// grid holds the values of a query, with rows and columns in the order of its projections.
type grid struct {
	rows, cols []string
	units      map[string]string       // of a column
	values     map[[2]string][]float64 // of a row and a column
}

func (r *results) grid(q query) (*grid, error) {
	filter, err := benchproc.NewFilter(q.filter)
	if err != nil {
		return nil, err
	}
	var parser benchproc.ProjectionParser
	rowBy, err := parser.Parse(q.row, filter)
	colBy, invalid := parser.Parse(q.col, filter)
	if err := errors.Join(err, invalid); err != nil {
		return nil, err
	}
	var rows, cols []benchproc.Key
	g := &grid{units: make(map[string]string), values: make(map[[2]string][]float64)}
	for _, line := range r.lines {
		if m, err := filter.Match(line); err != nil || !m.Any() {
			continue
		}
		row, col := rowBy.Project(line), colBy.Project(line)
		rows, cols = append(rows, row), append(cols, col)
		for _, unit := range q.units {
			if v, ok := line.Value(unit); ok {
				cell := [2]string{row.StringValues(), q.column(col.StringValues(), unit)}
				g.values[cell] = append(g.values[cell], v)
			}
		}
	}
	if len(g.values) == 0 {
		return nil, fmt.Errorf("no results for %s", q.filter)
	}
	g.rows = ordered(rows)
	for _, col := range ordered(cols) {
		for _, unit := range q.units {
			name := q.column(col, unit)
			g.cols, g.units[name] = append(g.cols, name), unit
		}
	}
	return g, nil
}

// column returns the name of a column. It includes the unit if nothing else tells columns apart.
func (q query) column(col, unit string) string {
	if len(q.units) == 1 && col != "" {
		return col
	}
	return strings.TrimSpace(col + " " + unitName(unit))
}

// ordered returns the text of the distinct keys, in the order of their projection.
func ordered(keys []benchproc.Key) []string {
	benchproc.SortKeys(keys)
	var names []string
	for _, k := range slices.Compact(keys) {
		names = append(names, k.StringValues())
	}
	return names
}

// median returns the median of a cell and its 95% confidence interval.
func (g *grid) median(row, col string) (s benchmath.Summary, ok bool) {
	values, ok := g.values[[2]string{row, col}]
	if !ok {
		return s, false
	}
	return median(values), true
}

func median(values []float64) benchmath.Summary {
	sample := benchmath.NewSample(values, &benchmath.DefaultThresholds)
	return benchmath.AssumeNothing.Summary(sample, 0.95)
}

// config returns the value of a configuration line.
func (r *results) config(key string) string { return strings.TrimSpace(r.lines[0].GetConfig(key)) }
