package main

import (
	"fmt"
	"slices"
	"strings"
)

// aim is a bound on one row in terms of another, in all columns.
type aim struct {
	what string
	most float64
	query
	row, over string // over "" means every other row
}

const (
	byLoad   = "/load,/keys,/dist"
	oneKey   = ".name:Allow /keys:1"
	allLoads = ".name:Allow -/load:new"
)

var aims = []aim{
	{"grants on one key, of the floor", 1.15,
		query{oneKey + " /load:grant /par:1", "/impl", byLoad, perOp}, "cas", "floor"},
	{"refusals on one key, of the floor", 1.25,
		query{oneKey + " /load:refuse /par:1", "/impl", byLoad, perOp}, "cas", "floor"},
	{"refusals by two goroutines, of those by one", 1 / 1.9,
		query{oneKey + " /load:refuse /impl:cas", "/par", "/impl", perOp}, "2", "1"},
	{"a million keys, of the floor", 1.2,
		query{allLoads + " /keys:1M", "/impl", byLoad + ",/par", perOp}, "cas", "floor"},
	{"one key and 64 goroutines, of `mutex`", 0.45,
		query{oneKey + " /par:64", "/impl", byLoad, perOp}, "cas", "mutex"},
	{"new keys, of x/time/rate in golang-lru", 0.7,
		query{".name:Allow /load:new", "/impl", byLoad + ",/par", perOp}, "cas", "xtime-lru"},
	{"one goroutine, of x/time/rate in a sync.Map", 0.45,
		query{allLoads + " /par:1", "/impl", byLoad, perOp}, "cas", "xtime-syncmap"},
	{"64 goroutines, of x/time/rate in a sync.Map", 0.35,
		query{allLoads + " /par:64", "/impl", byLoad, perOp}, "cas", "xtime-syncmap"},
	{"memory, of any other that keeps its keys", 1,
		query{".name:Memory -/impl:(floor OR httprate)", "/impl", "/keys", []string{"B/key"}},
		"cas", ""},
}

// aimTable tells of each aim how far the worst column is from it, and what the floor has
// there.
func aimTable(raw *results) (string, error) {
	var b strings.Builder
	b.WriteString("| aim | at most | worst | the floor there | met in |\n|---|---:|---:|---:|---|\n")
	for _, a := range aims {
		g, err := raw.grid(a.query)
		if err != nil {
			return "", fmt.Errorf("%s: %w", a.what, err)
		}
		worst, at, met := 0.0, "", 0
		for _, col := range g.cols {
			v := a.value(g, col)
			if v <= a.most {
				met++
			}
			if v > worst {
				worst, at = v, col
			}
		}
		floor := missing
		if slices.Contains(g.rows, "floor") && a.over != "floor" {
			floor = g.ratioCell("floor", a.over, at)
		}
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %s | %d of %d |\n",
			a.what, a.most, worst, floor, met, len(g.cols))
	}
	return b.String(), nil
}

// value returns the quotient in a column, the largest if there are several.
func (a *aim) value(g *grid, col string) (most float64) {
	s, _ := g.median(a.row, col)
	for _, row := range g.rows {
		if row == a.over || a.over == "" && row != a.row {
			if base, ok := g.median(row, col); ok {
				most = max(most, s.Center/base.Center)
			}
		}
	}
	return most
}
