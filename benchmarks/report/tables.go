package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// spec is what a table shows.
type spec struct {
	query
	over string // the row that the others are divided by; "" shows the values themselves
	head string
}

// tables are those of the documents. Their cells are medians, with the half width of the
// 95% confidence interval where there are enough rounds for one.
var tables = map[string]spec{
	"machine": {},
	"aims":    {},
	"floor-1": {
		query: query{".name:Allow /par:1 -/keys:100k", "/impl", "/load,/keys,/dist", perOp},
		over:  "floor", head: "× floor",
	},
	"floor-64": {
		query: query{".name:Allow /par:64 -/keys:100k", "/impl", "/load,/keys,/dist", perOp},
		over:  "floor", head: "× floor",
	},
	"xtime-1": {
		query: query{xtime + " /par:1", "/impl", "/load,/keys,/dist", perOp},
		over:  "xtime-syncmap", head: "× x/time/rate",
	},
	"xtime-64": {
		query: query{xtime + " /par:64", "/impl", "/load,/keys,/dist", perOp},
		over:  "xtime-syncmap", head: "× x/time/rate",
	},
	"short-1": {
		query: query{short + " /par:1", "/impl", "/load,/keys,/dist", perOp},
		head:  "ns, one goroutine",
	},
	"short-64": {
		query: query{short + " /par:64", "/impl", "/load,/keys,/dist", perOp},
		head:  "ns, 64 goroutines",
	},
	"grant": {
		query: query{".name:Allow /load:grant /keys:1", "/impl", "/par@num", perOp},
		head:  "goroutines",
	},
	"refuse": {
		query: query{".name:Allow /load:refuse", "/impl", "/par@num", perOp},
		head:  "goroutines",
	},
	"mix": {
		query: query{".name:Allow /load:mix", "/impl", "/par@num",
			[]string{"sec/op", "granted/op"}},
		head: "goroutines",
	},
	"new": {
		query: query{".name:Allow /load:new", "/impl", "/par@num", perOp},
		head:  "goroutines",
	},
	"keys-1": {query: query{".name:Allow /load:grant -/keys:1 /par:1", "/impl",
		"/dist,/keys", perOp}},
	"keys-64": {query: query{".name:Allow /load:grant -/keys:1 /par:64", "/impl",
		"/dist,/keys", perOp}},
	"allocs": {query: query{".name:Allow /keys:(1 OR few OR new) /par:1", "/impl", "/load",
		[]string{"B/op", "allocs/op"}}},
	"caller": {query: query{".name:Caller", "/impl,/key,/time", "", perOp}},
	"memory": {
		query: query{".name:Memory", "/impl", "/keys", []string{"B/key"}},
		head:  "bytes a key",
	},
	"gc": {
		query: query{".name:Memory", "/impl", "/keys", []string{"gc-cpu-sec"}},
		head:  "CPU time, ms",
	},
	"tail-2": {query: query{".name:Tail /load:churn /par:2", "/impl", "",
		percentiles("")}},
	"tail-64": {query: query{".name:Tail /load:churn /par:64", "/impl", "",
		percentiles("")}},
	"grow-insert": {query: query{".name:Tail /load:grow", "/impl", "", percentiles("insert-")}},
	"grow-hit":    {query: query{".name:Tail /load:grow", "/impl", "", percentiles("hit-")}},
	"contention": {
		query: query{".name:Contention", "/line", "/par@num", perOp},
		head:  "ns, goroutines",
	},
	"failures": {
		query: query{".name:Contention /line:cas", "/line", "/par@num",
			[]string{"failures/op"}},
		head: "failures a grant, goroutines",
	},
}

var perOp = []string{"sec/op"}

// What is compared with x/time/rate, and what the README has room for.
const (
	xtime = ".name:Allow -/load:new /impl:(floor OR cas OR xtime-syncmap)"
	short = ".name:Allow /dist:uniform -/keys:100k" +
		" /impl:(floor OR cas OR mutex OR xtime-syncmap OR xtime-lru)"
)

func percentiles(kind string) (units []string) {
	for _, p := range []string{"p50", "p99", "p99.9", "max"} {
		units = append(units, kind+p+"-sec")
	}
	return units
}

// unitNames are the units where a column needs to say which one it is.
var unitNames = map[string]string{
	"sec/op": "ns", "granted/op": "granted", "B/op": "B", "allocs/op": "allocations",
	"p50-sec": "p50", "p99-sec": "p99", "p99.9-sec": "p99.9", "max-sec": "max",
	"insert-p50-sec": "p50", "insert-p99-sec": "p99", "insert-p99.9-sec": "p99.9",
	"insert-max-sec": "max",
	"hit-p50-sec":    "p50", "hit-p99-sec": "p99", "hit-p99.9-sec": "p99.9",
	"hit-max-sec": "max",
}

// table returns the table of the given name in Markdown.
func table(raw *results, name string) (string, error) {
	t, ok := tables[name]
	if !ok {
		return "", errors.New("there is no such table")
	}
	switch name {
	case "machine":
		return machine(raw), nil
	case "aims":
		return aimTable(raw)
	}
	g, err := raw.grid(t.query)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	row := func(first string, cells []string) {
		b.WriteString("| " + first + " | " + strings.Join(cells, " | ") + " |\n")
	}
	row(t.head, headings(g.cols))
	b.WriteString("|---|" + strings.Repeat("---:|", len(g.cols)) + "\n")
	for _, r := range g.rows {
		var cells []string
		for _, c := range g.cols {
			if t.over != "" {
				cells = append(cells, g.ratioCell(r, t.over, c))
			} else {
				cells = append(cells, g.cell(r, c))
			}
		}
		if r == "cas" {
			r = "**cas**"
		}
		row(r, cells)
	}
	return b.String(), nil
}

// headings leave out what all loads say of themselves.
func headings(cols []string) []string {
	tidy := strings.NewReplacer("grant 1 uniform", "grant", "refuse 1 uniform", "refuse",
		"mix few uniform", "mix", "new new uniform", "new", " uniform", "")
	var heads []string
	for _, c := range cols {
		if c == "" {
			c = "ns"
		}
		heads = append(heads, tidy.Replace(c))
	}
	return heads
}

const missing = "–"

func (g *grid) cell(row, col string) string {
	s, ok := g.median(row, col)
	if !ok {
		return missing
	}
	text := format(s.Center, g.units[col])
	if half := (s.Hi - s.Lo) / 2 / s.Center; !math.IsInf(half, 0) && half >= 0.005 {
		text += fmt.Sprintf(" ±%.0f%%", 100*half)
	}
	return text
}

func (g *grid) ratioCell(row, over, col string) string {
	s, ok := g.median(row, col)
	base, has := g.median(over, col)
	if !ok || !has {
		return missing
	}
	return strconv.FormatFloat(s.Center/base.Center, 'f', 2, 64)
}

// format writes a value with three digits: seconds as nanoseconds, but for the CPU time of
// a garbage collection, which is in milliseconds.
func format(v float64, unit string) string {
	switch {
	case unit == "granted/op" || unit == "failures/op":
		return strconv.FormatFloat(v, 'f', 3, 64)
	case unit == "gc-cpu-sec":
		v *= 1e3
	case strings.Contains(unit, "sec"):
		v *= 1e9
	}
	digits := 0
	if v != math.Trunc(v) && v < 100 {
		digits = 1
	}
	return thousands(strconv.FormatFloat(v, 'f', digits, 64))
}

// thousands puts commas into a number.
func thousands(number string) string {
	whole, fraction, _ := strings.Cut(number, ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole
}

func machine(raw *results) string {
	var b strings.Builder
	b.WriteString("| | |\n|---|---|\n")
	for _, key := range []string{"cpu", "cores", "kernel", "go", "goos", "goarch", "commit",
		"date", "rounds", "benchtime"} {
		fmt.Fprintf(&b, "| %s | %s |\n", key, raw.config(key))
	}
	if raw.failed > 0 {
		fmt.Fprintf(&b, "| failed | %d of %d |\n", raw.failed, raw.failed+len(raw.lines))
	}
	return b.String()
}
