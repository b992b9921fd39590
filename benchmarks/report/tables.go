package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// table is a table of a listing. Its cells are medians with half the width of their 95%
// confidence interval, or quotients of medians.
type table struct {
	name, title string
	query
	head string // of the first column
	over string // the row that divides the others; "" for the values themselves
}

// made are the tables without a query.
var made = map[string]func(*results) (string, error){
	"machine": machine, "hits-machine": machine, "redis-machine": machine,
	"hits": hitsTable,
}

const byLoad = "/load,/keys,/dist"

var tables = []table{
	{name: "machine", title: "Machine and run"},
	{"floor-1", "Times the floor's time, 1 goroutine",
		allow("/par:1 -/keys:100k", byLoad), "× floor", "floor"},
	{"floor-64", "Times the floor's time, 64 goroutines",
		allow("/par:64 -/keys:100k", byLoad), "× floor", "floor"},
	{"xtime-1", "Times x/time/rate's time, 1 goroutine",
		allow("/par:1 "+xtime, byLoad), "× x/time/rate", "xtime-syncmap"},
	{"xtime-64", "Times x/time/rate's time, 64 goroutines",
		allow("/par:64 "+xtime, byLoad), "× x/time/rate", "xtime-syncmap"},
	{"short-1", "Decisions of few contenders, 1 goroutine",
		allow("/par:1 "+short, byLoad), "ns, one goroutine", ""},
	{"grant", "Grants on one key, ns", allow("/load:grant /keys:1", "/par@num"), goroutines, ""},
	{"refuse", "Refusals on one key, ns", allow("/load:refuse", "/par@num"), goroutines, ""},
	{"mix", "At the limit", query{".name:Allow /load:mix", "/impl", "/par@num",
		[]string{"sec/op", "granted/op"}}, goroutines, ""},
	{"keys-1", "Many keys, 1 goroutine, ns",
		allow("/load:grant -/keys:1 /par:1", "/dist,/keys"), "", ""},
	{"keys-64", "Many keys, 64 goroutines, ns",
		allow("/load:grant -/keys:1 /par:64", "/dist,/keys"), "", ""},
	{"new", "New keys in a full table, ns", allow("/load:new", "/par@num"), goroutines, ""},
	{"new-lru", "New keys, times the time of x/time/rate in golang-lru",
		allow("/load:new /impl:(floor OR cas OR xtime-lru)", "/par@num"), goroutines, "xtime-lru"},
	{"allocs", "Allocations, 1 goroutine",
		query{".name:Allow /keys:(1 OR few OR new) /par:1", "/impl", "/load",
			[]string{"B/op", "allocs/op"}}, "", ""},
	{"caller", "Calls with a time or another type of key",
		query{".name:Caller", "/impl,/key,/time", "", perOp}, "", ""},
	{"memory", "Live heap by key",
		query{".name:Memory", "/impl", "/keys", []string{"B/key"}}, "bytes a key", ""},
	{"gc", "CPU time of one garbage collection with the table in the heap",
		query{".name:Memory", "/impl", "/keys", []string{"gc-cpu-sec"}}, "CPU time, ms", ""},
	{"flood", "Live heap in a flood of new keys against a bound of 100,000",
		query{".name:Flood", "/impl", "/calls@num", []string{"heap-B"}}, "MB after", ""},
	{"tail-2", "Single calls, 2 goroutines, ns", tail("/load:churn /par:2", ""), "", ""},
	{"tail-64", "Single calls, 64 goroutines, ns", tail("/load:churn /par:64", ""), "", ""},
	{"grow-insert", "Single inserts into a growing table, ns",
		tail("/load:grow", "insert-"), "", ""},
	{"grow-hit", "Single hits during the inserts, ns", tail("/load:grow", "hit-"), "", ""},
	{"contention", "Goroutines on one word",
		query{".name:Contention", "/line", "/par@num", perOp}, "ns, goroutines", ""},
	{"failures", "Failed compare-and-swaps per grant",
		query{".name:Contention /line:cas", "/line", "/par@num", []string{"failures/op"}},
		"failures a grant, goroutines", ""},
}

const (
	goroutines = "goroutines"

	xtime = "-/load:new /impl:(floor OR cas OR xtime-syncmap)"
	short = "/dist:uniform -/keys:100k" +
		" /impl:(floor OR cas OR mutex OR xtime-syncmap OR xtime-lru)"
)

var perOp = []string{"sec/op"}

// allow returns the query for the time of a decision.
func allow(filter, col string) query { return query{".name:Allow " + filter, "/impl", col, perOp} }

// tail returns the query for percentiles of single calls.
func tail(filter, kind string) query {
	var units []string
	for _, p := range percentiles {
		units = append(units, kind+p+"-sec")
	}
	return query{".name:Tail " + filter, "/impl", "", units}
}

var percentiles = []string{"p50", "p99", "p99.9", "max"}

// unitName returns what a column of that unit is called if there are columns of other units.
func unitName(unit string) string {
	switch unit {
	case "sec/op":
		return "ns"
	case "B/op":
		return "B"
	case "allocs/op":
		return "allocations"
	case "server-sec/op":
		return "server ns"
	}
	for _, kind := range []string{"insert-", "hit-"} {
		unit = strings.TrimPrefix(unit, kind)
	}
	return strings.TrimSuffix(strings.TrimSuffix(unit, "-sec"), "/op")
}

// markdown returns the table.
func (t table) markdown(raw *results) (string, error) {
	if t.filter == "" {
		return made[t.name](raw)
	}
	g, err := raw.grid(t.query)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	row := func(first string, cells []string) {
		b.WriteString("| " + first + " | " + strings.Join(cells, " | ") + " |\n")
	}
	row(t.head, g.headings())
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

// headings returns the columns without the words that follow from the load.
func (g *grid) headings() []string {
	tidy := strings.NewReplacer("grant 1 uniform", "grant", "refuse 1 uniform", "refuse",
		"mix few uniform", "mix", "new new uniform", "new", " uniform", "")
	var heads []string
	for _, c := range g.cols {
		if c == "" {
			c = unitName(g.units[c])
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

// format writes a value with up to three significant digits. Seconds become nanoseconds;
// the CPU time of a garbage collection becomes milliseconds, and the heap megabytes.
func format(v float64, unit string) string {
	switch {
	case unit == "granted/op" || unit == "failures/op" || unit == "errors/op":
		return strconv.FormatFloat(v, 'f', 3, 64)
	case unit == "trips/op":
		return strconv.FormatFloat(v, 'g', 3, 64)
	case unit == "gc-cpu-sec":
		v *= 1e3
	case unit == "heap-B":
		v *= 1e-6
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

func machine(raw *results) (string, error) {
	var b strings.Builder
	b.WriteString("| | |\n|---|---|\n")
	for _, key := range []string{"cpu", "cores", "kernel", "go", "goos", "goarch", "redis", "commit",
		"date", "rounds", "benchtime"} {
		if value := raw.config(key); value != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", key, value)
		}
	}
	if raw.failed > 0 {
		fmt.Fprintf(&b, "| failed | %d of %d |\n", raw.failed, raw.failed+len(raw.lines))
	}
	return b.String(), nil
}
