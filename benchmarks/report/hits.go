package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/perf/benchmath"
)

// hits are the rows of the table of calls on known keys: the projections of their benchmarks, and
// the most that a call may take, in times of the floor; 0 if the floor does something else.
var hits = []struct {
	text, impl, load string
	atMost           float64
}{
	{"grant, one key", "cas", "grant 1 1", 1.1},
	{"grant, one key, caller's time", "cas-at", "grant 1 1", 0},
	{"refuse, one key", "cas", "refuse 1 1", 1.22},
	{"refuse, one key, caller's time", "cas-at", "refuse 1 1", 0},
	{"refuse, one key, 64 goroutines", "cas", "refuse 1 64", 1.22},
	{"grant, 1,000 keys, 64 goroutines", "cas", "grant 1k 64", 1.15},
	{"grant, 100,000 keys", "cas", "grant 100k 1", 1.12},
	{"grant, a million keys", "cas", "grant 1M 1", 1.05},
	{"grant, one key, `mutex`", "mutex", "grant 1 1", 0},
	{"refuse, one key, `mutex`", "mutex", "refuse 1 1", 0},
}

// hitsTable compares this tree, an older commit and the floor. The cells are medians over the
// rounds. A quotient is of two times of the same round.
func hitsTable(raw *results) (string, error) {
	g, err := raw.grid(query{".name:Hits", "round", "side,/impl,/load,/keys,/par", perOp})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| ns | now | %s | floor | now / %[1]s | now / floor | at most |\n",
		raw.config("base"))
	b.WriteString("|---|---:|---:|---:|---:|---:|---:|\n")
	for _, h := range hits {
		now, base := "now "+h.impl+" "+h.load, "base "+h.impl+" "+h.load
		floor, atMost := "", missing
		if h.atMost > 0 {
			floor, atMost = "now floor "+h.load, fmt.Sprintf("%.2f", h.atMost)
		}
		cells := []string{h.text}
		for _, col := range []string{now, base, floor} {
			cells = append(cells, g.perRound(1, func(time func(string) float64) float64 {
				return time(col) * 1e9
			}))
		}
		for _, divisor := range []string{base, floor} {
			cells = append(cells, g.perRound(2, func(time func(string) float64) float64 {
				return time(now) / time(divisor)
			}))
		}
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(cells, " | "), atMost)
	}
	return b.String(), nil
}

// perRound returns the median over the rounds of what value makes of the times of a round. Rounds
// without one of its times do not count.
func (g *grid) perRound(digits int, value func(time func(col string) float64) float64) string {
	var values []float64
	for _, round := range g.rows {
		v := value(func(col string) float64 {
			if s, ok := g.samples[[2]string{round, col}]; ok {
				return s.Values[0]
			}
			return math.NaN()
		})
		if !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return missing
	}
	sample := benchmath.NewSample(values, &benchmath.DefaultThresholds)
	median := benchmath.AssumeNothing.Summary(sample, 0.95).Center
	return strconv.FormatFloat(median, 'f', digits, 64)
}
