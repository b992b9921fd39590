package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// table is a table of benchmarks/results/README.md, which BENCHMARKS.md may quote by its name. Its
// cells are medians with half the width of their 95% confidence interval, or quotients of medians.
type table struct {
	name, file string // of the raw results
	title      string
	query
	head string // of the first column
	over string // the row that divides the others; "" for the values themselves
}

// made are the texts without a query, by name.
var made = map[string]struct {
	file string
	text func(*results) (string, error)
}{
	"in-short":      {bench, inShort},
	"machine":       {bench, machine},
	"hits-machine":  {onHits, machine},
	"redis-machine": {inRedis, machine},
	"hits":          {onHits, hitsTable},
}

// The files of raw results.
const bench, onHits, inRedis = "bench.txt", "hits.txt", "redis.txt"

var tables = []table{
	{
		"decisions", bench, "A decision, one goroutine",
		allow("/par:1 /dist:uniform -/keys:100k", byLoad), "ns", "",
	},
	{
		"floor-1", bench, "Distance from the floor, one goroutine",
		allow("/par:1 -/keys:100k", byLoad), "× floor", "floor",
	},
	{
		"xtime-1", bench, "Against golang.org/x/time/rate in a sync.Map, one goroutine",
		allow("/par:1 "+xtime, byLoad), "× x/time/rate", "xtime-syncmap",
	},
	{
		"xtime-64", bench, "Against golang.org/x/time/rate in a sync.Map, 64 goroutines",
		allow("/par:64 "+xtime, byLoad), "× x/time/rate", "xtime-syncmap",
	},
	{
		"memory", bench, "Live heap for each key, with the key",
		query{".name:Memory", "/impl", "/keys", []string{"B/key"}}, "bytes a key", "",
	},
	{
		"tail-2", bench, "Single calls by two goroutines, in ns: nine hits of 50,000 keys, then a new key",
		query{".name:Tail /par:2", "/impl", "",
			[]string{"p50-sec", "p99-sec", "p99.9-sec", "max-sec"}}, "", "",
	},
	{"redis-hot-64", inRedis, "In Redis: one key, 64 goroutines", costs("hot_key"), "", ""},
	{
		"redis-user-64", inRedis, "In Redis: a key for each of 64 goroutines",
		costs("per_user"), "", "",
	},
	{
		"redis-refuse-64", inRedis, "In Redis: refusals on one key, 64 goroutines",
		costs("refuse"), "", "",
	},
	{
		"redis-keys", inRedis, "In Redis: the server's memory for each of 100,000 keys",
		query{".name:Keys", "/impl", "", []string{"B/key"}}, "", "",
	},
	{
		"redis-race", inRedis, "In Redis: 64 goroutines race for the tokens of one bucket",
		query{".name:OverGrant /procs:1", "/impl", "", race}, "", "",
	},
	{
		"redis-processes", inRedis, "In Redis: one key, 64 goroutines in several processes, in ns",
		query{".name:Processes", "/impl", "/procs@num", perOp}, "processes", "",
	},
}

const (
	byLoad = "/load,/keys,/dist"
	xtime  = "-/load:new /impl:(floor OR cas OR xtime-syncmap)"
)

var (
	perOp = []string{"sec/op"}
	race  = []string{"granted", "allowed", "calls", "failed"}
)

// allow returns the query for the time of a decision.
func allow(filter, col string) query { return query{".name:Allow " + filter, "/impl", col, perOp} }

// costs returns the query for all that a decision of 64 goroutines in Redis costs.
func costs(load string) query {
	return query{
		".name:Allow /par:64 /load:" + load, "/impl", "",
		[]string{"sec/op", "trips/op", "server-sec/op", "allocs/op", "errors/op"},
	}
}

// unitName returns what a column of that unit is called if there are columns of other units.
func unitName(unit string) string {
	switch unit {
	case "sec/op":
		return "ns"
	case "allocs/op":
		return "allocations"
	case "server-sec/op":
		return "server ns"
	}
	return strings.TrimSuffix(strings.TrimSuffix(unit, "-sec"), "/op")
}

// markdown returns the table.
func (t table) markdown(raw *results) (string, error) {
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
		"new new uniform", "new", " uniform", "")
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

// format writes a value with up to three significant digits. Seconds become nanoseconds.
func format(v float64, unit string) string {
	switch {
	case unit == "errors/op":
		return strconv.FormatFloat(v, 'f', 3, 64)
	case unit == "trips/op":
		return strconv.FormatFloat(v, 'g', 3, 64)
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

// machine returns where and when results were measured.
func machine(raw *results) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s at commit %s: %s, %s cores, %s, %s, %s/%s",
		raw.config("date"), raw.config("commit"), raw.config("cpu"), raw.config("cores"),
		raw.config("kernel"), raw.config("go"), raw.config("goos"), raw.config("goarch"))
	if redis := raw.config("redis"); redis != "" {
		b.WriteString(", Redis " + redis)
	}
	fmt.Fprintf(&b, ".\n%s rounds of %s.", raw.config("rounds"), raw.config("benchtime"))
	if raw.failed > 0 {
		fmt.Fprintf(&b, " Failed: %d of %d.", raw.failed, raw.failed+len(raw.lines))
	}
	b.WriteString("\n")
	return b.String(), nil
}
