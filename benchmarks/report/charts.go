package main

import "fmt"

// chart is a drawing of one or two panels side by side.
type chart struct {
	name   string
	panels []panel
}

// panel shows a line for each contender, or only its points, over the columns of a query.
type panel struct {
	query
	title, x, y string
	scale       float64           // of the results to the unit on the axis
	labels      map[string]string // of columns on the axis; without any, their names
	ratio       bool              // to the floor
	points      bool              // without lines, where columns have nothing to do with each other
	durations   bool              // on the axis, in nanoseconds
}

const perDecision = "ns per decision"

var charts = []chart{
	{"goroutines", []panel{
		{
			query: query{".name:Allow /load:grant /keys:1", "/impl", "/par@num", perOp},
			title: "Grants, one key", x: "goroutines (2 cores)", y: perDecision, scale: 1e9,
		},
		{
			query: query{".name:Allow /load:refuse", "/impl", "/par@num", perOp},
			title: "Refusals, one key", x: "goroutines (2 cores)", y: perDecision, scale: 1e9,
		},
	}},
	{"keys", []panel{
		{
			query: query{".name:Allow /load:grant /par:1 /dist:uniform", "/impl", "/keys@num", perOp},
			title: "Grants, 1 goroutine", x: "keys, uniform", y: perDecision, scale: 1e9,
		},
		{
			query: query{".name:Allow /load:grant /par:64 /dist:uniform", "/impl", "/keys@num", perOp},
			title: "Grants, 64 goroutines", x: "keys, uniform", y: perDecision, scale: 1e9,
		},
	}},
	{"floor", []panel{
		{
			query: query{".name:Allow /par:1 -/keys:100k", "/impl", "/load,/keys,/dist", perOp},
			title: "How far from the floor, 1 goroutine",
			x:     "load", y: "times the floor's time", scale: 1, ratio: true, points: true,
			labels: map[string]string{
				"grant 1 uniform": "grant\n1 key", "refuse 1 uniform": "refuse\n1 key",
				"mix few uniform": "mix\nfew keys", "new new uniform": "new\nkeys",
				"grant 1k uniform": "grant\n1k", "grant 1k zipf": "grant\n1k Zipf",
				"grant 1M uniform": "grant\n1M", "grant 1M zipf": "grant\n1M Zipf",
			},
		},
	}},
	{"memory", []panel{
		{
			query: query{".name:Memory", "/impl", "/keys@num", []string{"B/key"}},
			title: "Memory, strings of 14 bytes included", x: "keys", y: "bytes per key", scale: 1,
		},
		{
			query: query{".name:Memory /keys:(100k OR 1M)", "/impl", "/keys@num",
				[]string{"gc-cpu-sec"}},
			title: "A garbage collection", x: "keys", y: "CPU time, ms", scale: 1e3,
		},
	}},
	{"flood", []panel{
		{
			query: query{".name:Flood", "/impl", "/calls@num", []string{"heap-B"}},
			title: "A flood of new keys against a bound of 100,000",
			x:     "new keys so far, millions", y: "live heap, MB", scale: 1e-6,
			labels: map[string]string{"200k": "0.2", "400k": "0.4", "600k": "0.6", "800k": "0.8",
				"1M": "1", "1200k": "1.2", "1400k": "1.4", "1600k": "1.6", "1800k": "1.8", "2M": "2"},
		},
	}},
	{"latency", []panel{
		{
			query: query{".name:Tail /load:churn /par:2", "/impl", "", percentiles("")},
			title: "9 hits and 1 insert that evicts, 2 goroutines", x: "percentile",
			y: "time of a call", scale: 1e9, durations: true,
		},
		{
			query: query{".name:Tail /load:churn /par:64", "/impl", "", percentiles("")},
			title: "The same, 64 goroutines on 2 cores", x: "percentile",
			y: "time of a call", scale: 1e9, durations: true,
		},
	}},
	{"growth", []panel{
		{
			query: query{".name:Tail /load:grow", "/impl", "", percentiles("insert-")},
			title: "Inserts, while a table grows to 1M keys", x: "percentile",
			y: "time of a call", scale: 1e9, durations: true,
		},
		{
			query: query{".name:Tail /load:grow", "/impl", "", percentiles("hit-")},
			title: "Hits, meanwhile", x: "percentile", y: "time of a call", scale: 1e9, durations: true,
		},
	}},
}

// series is what a panel shows of one contender, by the number of a column.
type series struct {
	impl   string
	at, to []float64
}

// series returns the medians, and the names of the columns.
func (p panel) series(raw *results) (all []series, columns []string, err error) {
	g, err := raw.grid(p.query)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range g.rows {
		s := series{impl: row}
		for i, col := range g.cols {
			m, ok := g.median(row, col)
			v := m.Center * p.scale
			if p.ratio {
				floor, has := g.median("floor", col)
				v, ok = m.Center/floor.Center, ok && has
			}
			if ok && v <= 0 {
				return nil, nil, fmt.Errorf("%s: %v in %q is not positive", row, v, col)
			}
			if ok {
				s.at, s.to = append(s.at, float64(i)), append(s.to, v)
			}
		}
		if len(s.at) > 0 {
			all = append(all, s)
		}
	}
	return all, g.cols, nil
}
