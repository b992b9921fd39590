package main

import "fmt"

// chart is a drawing of panels side by side, in a file of that name.
type chart struct {
	name   string
	panels []panel
}

// panel shows a line for each contender over the columns of a query.
type panel struct {
	query
	title, x, y string
	scale       float64 // from the unit of the results to the unit of the axis
}

var charts = []chart{
	{"goroutines", []panel{
		{allow("/load:grant /keys:1", "/par@num"),
			"Grants, one key", "goroutines (2 cores)", "ns per decision", 1e9},
		{allow("/load:refuse", "/par@num"),
			"Refusals, one key", "goroutines (2 cores)", "ns per decision", 1e9},
	}},
	{"flood", []panel{
		{query{".name:Flood /calls:(400k OR 800k OR 1200k OR 1600k OR 2M)", "/impl",
			"/calls@num", []string{"heap-B"}},
			"A flood of new keys against a bound of 100,000", "new keys so far",
			"live heap, MB", 1e-6},
	}},
}

// series is the line of one contender: columns by their index, and medians.
type series struct {
	impl    string
	columns []float64
	medians []float64
}

// series returns the lines of the panel and the names of the columns.
func (p panel) series(raw *results) (all []series, columns []string, err error) {
	g, err := raw.grid(p.query)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range g.rows {
		s := series{impl: row}
		for i, col := range g.cols {
			m, ok := g.median(row, col)
			if !ok {
				continue
			}
			if m.Center <= 0 {
				return nil, nil, fmt.Errorf("%s: %v in %q is not positive", row, m.Center, col)
			}
			s.columns = append(s.columns, float64(i))
			s.medians = append(s.medians, m.Center*p.scale)
		}
		if len(s.columns) > 0 {
			all = append(all, s)
		}
	}
	return all, g.cols, nil
}
