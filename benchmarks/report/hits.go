package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/perf/benchmath"
)

// hits are the rows of the table of calls on known keys: what they are, and the projections of
// their benchmarks without the side and the implementation.
var hits = []struct{ text, impl, load string }{
	{"grant, one key", "cas", "grant 1 1"},
	{"grant, one key, caller's time", "cas-at", "grant 1 1"},
	{"refuse, one key", "cas", "refuse 1 1"},
	{"refuse, one key, caller's time", "cas-at", "refuse 1 1"},
	{"refuse, one key, 64 goroutines", "cas", "refuse 1 64"},
	{"grant, 1,000 keys, 64 goroutines", "cas", "grant 1k 64"},
	{"grant, 100,000 keys", "cas", "grant 100k 1"},
	{"grant, a million keys", "cas", "grant 1M 1"},
	{"`mutex`: grant, one key", "mutex", "grant 1 1"},
	{"`mutex`: refuse, one key", "mutex", "refuse 1 1"},
}

// hitsTable compares this tree, an older commit and the floor. The cells are medians over the
// rounds. A quotient is of two times of the same round.
func hitsTable(raw *results) (string, error) {
	g, err := raw.grid(query{".name:Hits", "round", "side,/impl,/load,/keys,/par", perOp})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| ns | now | %s | floor | now / %[1]s | now / floor |\n", raw.config("base"))
	b.WriteString("|---|---:|---:|---:|---:|---:|\n")
	for _, h := range hits {
		now, base, floor := "now "+h.impl+" "+h.load, "base "+h.impl+" "+h.load, ""
		if h.impl == "cas" { // the floor reads the clock
			floor = "now floor " + h.load
		}
		cells := []string{h.text}
		for _, col := range []string{now, base, floor} {
			cells = append(cells, perRound(g, func(time func(string) float64) float64 {
				return time(col) * 1e9
			}, 1))
		}
		for _, divisor := range []string{base, floor} {
			cells = append(cells, perRound(g, func(time func(string) float64) float64 {
				return time(now) / time(divisor)
			}, 3))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String(), nil
}

// perRound returns the median over the rounds of what value makes of the times of a round. Rounds
// without one of its times do not count.
func perRound(g *grid, value func(time func(col string) float64) float64, digits int) string {
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
