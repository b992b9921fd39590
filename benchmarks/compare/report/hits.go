package main

import "fmt"

// hits are the rows of the table of calls on known keys: the projections of their benchmarks, and
// the most that a call may take, in times of the floor; 0 if the floor does something else.
var hits = []struct {
	text, impl, load string
	atMost           float64
}{
	{"grant, one key", "cas", "grant 1 1", 1.1},
	{"grant, one key, caller's time", "cas-at", "grant 1 1", 0},
	{"grant, one key, coarse clock", "cas-coarse", "grant 1 1", 0},
	{"refuse, one key", "cas", "refuse 1 1", 1.22},
	{"refuse, one key, caller's time", "cas-at", "refuse 1 1", 0},
	{"refuse, one key, coarse clock", "cas-coarse", "refuse 1 1", 0},
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
	older := raw.config("base")
	rows := [][]string{
		{"ns", "now", older, "floor", "now / " + older, "now / floor", "at most"},
	}
	for _, h := range hits {
		now, base := "now "+h.impl+" "+h.load, "base "+h.impl+" "+h.load
		floor, atMost := missing, missing // which no column is called
		if h.atMost > 0 {
			floor, atMost = "now floor "+h.load, fmt.Sprintf("%.2f", h.atMost)
		}
		rows = append(rows, []string{
			h.text, g.perRound(now, ""), g.perRound(base, ""), g.perRound(floor, ""),
			g.perRound(now, base), g.perRound(now, floor), atMost,
		})
	}
	return markdown(rows), nil
}

// perRound returns the median over the rounds of the times in a column, in ns, or of their
// quotients with the times in the column over. Rounds without one of the times do not count.
func (g *grid) perRound(col, over string) string {
	var values []float64
	for _, round := range g.rows {
		times, divisors := g.values[[2]string{round, col}], g.values[[2]string{round, over}]
		switch {
		case len(times) == 0:
		case over == "":
			values = append(values, times[0]*1e9)
		case len(divisors) > 0:
			values = append(values, times[0]/divisors[0])
		}
	}
	switch {
	case len(values) == 0:
		return missing
	case over == "":
		return fmt.Sprintf("%.1f", median(values).Center)
	}
	return fmt.Sprintf("%.2f", median(values).Center)
}
