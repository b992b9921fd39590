package main

import (
	"fmt"
	"strings"
)

// aim bounds the time or memory of cas over the value of another row, in all columns of a query.
type aim struct {
	load, divisor string
	atMost        float64
	row, other    string // the other row "" is the least of all other rows
	query
}

var aims = []aim{
	{"grants on one key", "the floor", 1.1, "cas", "floor",
		allow("/keys:1 /load:grant /par:1", byLoad)},
	{"refusals on one key", "the floor", 1.22, "cas", "floor",
		allow("/keys:1 /load:refuse /par:1", byLoad)},
	{"a million keys", "the floor", 1.2, "cas", "floor",
		allow("/load:grant /keys:1M", byLoad+",/par")},
	{"refusals by two goroutines", "`cas` with one goroutine", 1 / 1.9, "2", "1",
		query{".name:Allow /load:refuse /impl:cas", "/par", "/impl", perOp}},
	{"one key and 64 goroutines", "`mutex`", 0.45, "cas", "mutex",
		allow("/keys:1 /par:64", byLoad)},
	{"memory", "any other limiter that keeps its keys", 1, "cas", "",
		query{".name:Memory -/impl:(floor OR httprate)", "/impl", "/keys", []string{"B/key"}}},
	{"new keys", "x/time/rate in golang-lru", 0.65, "cas", "xtime-lru",
		allow("/load:new", byLoad+",/par")},
	{"new keys, one goroutine", "the floor", 1.15, "cas", "floor",
		allow("/load:new /par:1", byLoad)},
	{"one goroutine", "x/time/rate in a sync.Map", 0.45, "cas", "xtime-syncmap",
		allow("-/load:new /par:1", byLoad)},
	{"64 goroutines", "x/time/rate in a sync.Map", 0.35, "cas", "xtime-syncmap",
		allow("-/load:new /par:64", byLoad)},
}

// aimsTable compares the aims with the results.
func aimsTable(raw *results) (string, error) {
	var b strings.Builder
	b.WriteString("| load | divided by | at most | worst | loads met |\n|---|---|---:|---:|---|\n")
	for _, a := range aims {
		g, err := raw.grid(a.query)
		if err != nil {
			return "", err
		}
		worst, met := 0.0, 0
		for _, col := range g.cols {
			quotient, err := g.quotient(a.row, a.other, col)
			if err != nil {
				return "", err
			}
			worst = max(worst, quotient)
			if quotient <= a.atMost {
				met++
			}
		}
		all := "all"
		if met < len(g.cols) {
			all = fmt.Sprintf("**%d of %d**", met, len(g.cols))
		}
		fmt.Fprintf(&b, "| %s | %s | %.2f | %.2f | %s |\n", a.load, a.divisor, a.atMost, worst, all)
	}
	return b.String(), nil
}

// quotient returns a cell divided by the least cell of the other rows, or by one other row.
func (g *grid) quotient(row, other, col string) (most float64, err error) {
	mine, ok := g.median(row, col)
	for _, r := range g.rows {
		if theirs, has := g.median(r, col); has && r != row && (r == other || other == "") {
			most = max(most, mine.Center/theirs.Center)
		}
	}
	if !ok || most == 0 {
		return 0, fmt.Errorf("no %s and %s in %q", row, other, col)
	}
	return most, nil
}
