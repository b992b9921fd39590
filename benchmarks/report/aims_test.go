package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The findings of BENCHMARKS.md compare a row with another, in all columns of a query, with
// an aim. The other row "" is the least of all other rows.
func TestDocumentStatesTheAims(t *testing.T) {
	raw, err := read(filepath.Join(root, resultsDir, inProcess.text))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []struct {
		load, divisor string
		atMost        float64
		row, other    string
		query
	}{
		{"grants on one key", "the floor", 1.15, "cas", "floor",
			allow("/keys:1 /load:grant /par:1", byLoad)},
		{"refusals on one key", "the floor", 1.25, "cas", "floor",
			allow("/keys:1 /load:refuse /par:1", byLoad)},
		{"a million keys", "the floor", 1.2, "cas", "floor",
			allow("/load:grant /keys:1M", byLoad+",/par")},
		{"refusals by two goroutines", "`cas` with one goroutine", 1 / 1.9, "2", "1",
			query{".name:Allow /load:refuse /impl:cas", "/par", "/impl", perOp}},
		{"one key and 64 goroutines", "`mutex`", 0.45, "cas", "mutex",
			allow("/keys:1 /par:64", byLoad)},
		{"memory", "any other limiter that keeps its keys", 1, "cas", "",
			query{".name:Memory -/impl:(floor OR httprate)", "/impl", "/keys", []string{"B/key"}}},
		{"new keys", "x/time/rate in golang-lru", 0.7, "cas", "xtime-lru",
			allow("/load:new", byLoad+",/par")},
		{"one goroutine", "x/time/rate in a sync.Map", 0.45, "cas", "xtime-syncmap",
			allow("-/load:new /par:1", byLoad)},
		{"64 goroutines", "x/time/rate in a sync.Map", 0.35, "cas", "xtime-syncmap",
			allow("-/load:new /par:64", byLoad)},
	} {
		g, err := raw.grid(a.query)
		if err != nil {
			t.Fatal(err)
		}
		worst, met := 0.0, 0
		for _, col := range g.cols {
			quotient := g.quotient(t, a.row, a.other, col)
			worst = max(worst, quotient)
			if quotient <= a.atMost {
				met++
			}
		}
		load := a.load
		if met < len(g.cols) {
			load = fmt.Sprintf("**missed:** %s (%d of %d loads met)", load, met, len(g.cols))
		}
		line := fmt.Sprintf("| %s | %s | %.2f | %.2f |", load, a.divisor, a.atMost, worst)
		if !strings.Contains(string(text), line) {
			t.Errorf("%s lacks the line %s", document, line)
		}
	}
}

func (g *grid) quotient(t *testing.T, row, other, col string) (most float64) {
	mine, ok := g.median(row, col)
	for _, r := range g.rows {
		if theirs, has := g.median(r, col); has && r != row && (r == other || other == "") {
			most = max(most, mine.Center/theirs.Center)
		}
	}
	if !ok || most == 0 {
		t.Fatalf("no %s and %s in %q", row, other, col)
	}
	return most
}
