package main

import (
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
)

// text is a table or a sentence that a document quotes by its name. What has a title is in
// benchmarks/results/README.md, too.
type text struct {
	name, file string // of the raw results
	title      string
	of         func(*results) (string, error)
}

// The files of raw results.
const (
	bench    = "bench.txt"
	headline = "headline.txt"
	onHits   = "hits.txt"
	inRedis  = "redis.txt"
)

var texts = []text{
	{"a-grant", headline, "", inShort("A grant", aGrant)},
	{"a-refusal", headline, "", inShort("A refusal among 64 goroutines", aRefusal)},
	{"machine", bench, "", machine},
	{"redis-machine", inRedis, "", machine},
	{"hits", onHits, "Calls on known keys, beside an older commit, by scripts/hits", hitsTable},
	{"hits-machine", onHits, "Where these calls were measured", machine},
	{"decisions", bench, "A decision, one goroutine",
		table{allow("/par:1 /dist:uniform -/keys:100k", byLoad), "ns", ""}.markdown},
	{"floor-1", bench, "Distance from the floor, one goroutine",
		table{allow("/par:1 -/keys:100k", byLoad), "× floor", "floor"}.markdown},
	{"xtime-1", bench, "Against golang.org/x/time/rate in a sync.Map, one goroutine",
		table{allow("/par:1 "+xtime, byLoad), "× x/time/rate", "xtime-syncmap"}.markdown},
	{"xtime-64", bench, "Against golang.org/x/time/rate in a sync.Map, 64 goroutines",
		table{allow("/par:64 "+xtime, byLoad), "× x/time/rate", "xtime-syncmap"}.markdown},
	{"memory", bench, "Live heap for each key, with the key",
		table{query{".name:Memory", "/impl", "/keys", perKey}, "bytes a key", ""}.markdown},
	{"tail-2", bench,
		"Single calls by two goroutines, in ns: nine hits of 50,000 keys, then a new key",
		table{query{".name:Tail /par:2", "/impl", "", quantiles}, "", ""}.markdown},
	{"redis-hot-64", inRedis, "In Redis: one key, 64 goroutines", costs("hot_key")},
	{"redis-user-64", inRedis, "In Redis: a key for each of 64 goroutines", costs("per_user")},
	{"redis-refuse-64", inRedis, "In Redis: refusals on one key, 64 goroutines", costs("refuse")},
	{"redis-keys", inRedis, "In Redis: the server's memory for each of 100,000 keys",
		table{query{".name:Keys", "/impl", "", perKey}, "", ""}.markdown},
	{"redis-race", inRedis, "In Redis: 64 goroutines race for the tokens of one bucket",
		table{query{".name:OverGrant /procs:1", "/impl", "", race}, "", ""}.markdown},
	{"redis-processes", inRedis, "In Redis: one key, 64 goroutines in several processes, in ns",
		table{query{".name:Processes", "/impl", "/procs@num", perOp}, "processes", ""}.markdown},
}

const (
	byLoad = "/load,/keys,/dist"
	xtime  = "-/load:new /impl:(floor OR cas OR xtime-syncmap)"
)

var (
	perOp     = []string{"sec/op"}
	perKey    = []string{"B/key"}
	quantiles = []string{"p50-sec", "p99-sec", "p99.9-sec", "max-sec"}
	race      = []string{"granted", "allowed", "calls", "failed"}
)

// allow returns the query for the time of a decision.
func allow(filter, col string) query { return query{".name:Allow " + filter, "/impl", col, perOp} }

// costs returns the table of all that a decision of 64 goroutines in Redis costs.
func costs(load string) func(*results) (string, error) {
	units := []string{"sec/op", "trips/op", "server-sec/op", "allocs/op", "errors/op"}
	return table{query{".name:Allow /par:64 /load:" + load, "/impl", "", units}, "", ""}.markdown
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

// table is a query in Markdown. Its cells are medians with half the width of their 95% confidence
// interval, or quotients of medians.
type table struct {
	query
	head string // of the first column
	over string // the row that divides the others; "" for the values themselves
}

// tidy removes from a heading the words that follow from the load.
var tidy = strings.NewReplacer("grant 1 uniform", "grant", "refuse 1 uniform", "refuse",
	"new new uniform", "new", " uniform", "")

func (t table) markdown(raw *results) (string, error) {
	g, err := raw.grid(t.query)
	if err != nil {
		return "", err
	}
	rows := [][]string{{t.head}}
	for _, col := range g.cols {
		rows[0] = append(rows[0], tidy.Replace(col))
	}
	for _, r := range g.rows {
		row := []string{r}
		if r == "cas" {
			row[0] = "**cas**"
		}
		for _, col := range g.cols {
			row = append(row, g.cell(r, t.over, col))
		}
		rows = append(rows, row)
	}
	return markdown(rows), nil
}

// markdown returns a table. The first row has the headings.
func markdown(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|---|" + strings.Repeat("---:|", len(row)-1) + "\n")
		}
	}
	return b.String()
}

const missing = "–"

func (g *grid) cell(row, over, col string) string {
	s, ok := g.median(row, col)
	base, comparable := g.median(over, col)
	switch {
	case !ok || over != "" && !comparable:
		return missing
	case over != "":
		return strconv.FormatFloat(s.Center/base.Center, 'f', 2, 64)
	}
	text := format(s.Center, g.units[col])
	if half := (s.Hi - s.Lo) / 2 / s.Center; !math.IsInf(half, 0) && half >= 0.005 {
		text += fmt.Sprintf(" ±%.0f%%", 100*half)
	}
	return text
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
	b.WriteString(raw.changes + "\n")
	return b.String(), nil
}

// changesSince says whether the code that bench.txt and hits.txt measure has changed since a
// commit.
func changesSince(dir, commit string) string {
	const page = " When this page was generated, `tb/cas` and `lru` "
	diff := exec.Command("git", "diff", "--quiet", commit, "--", "tb/cas", "lru", ":!*_test.go")
	diff.Dir = dir
	var exit *exec.ExitError
	switch err := diff.Run(); {
	case err == nil:
		return page + "had not changed since."
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return page + "had changed since."
	default: // a dirty tree, or a clone without its history
		return page + "may have changed since."
	}
}
