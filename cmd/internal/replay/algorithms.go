package replay

import (
	"fmt"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/algorithm"
)

// AlgorithmOutcome has the decisions of one algorithm.
type AlgorithmOutcome struct {
	// Algorithm is the name in --algorithm.
	Algorithm string `json:"algorithm"`
	// Refused counts requests, and KeysRefused the keys that were refused at least once.
	Refused     uint64 `json:"refused"`
	KeysRefused uint64 `json:"keys_refused"`
}

// algorithmMode decides requests by several algorithms besides a limit.
type algorithmMode struct {
	*limitMode
	burst, window uint64
	outcomes      []AlgorithmOutcome
	contests      map[*client]*contest
}

// contest has what decides the requests of a client: an element for each algorithm.
type contest struct {
	takes   []algorithm.Take
	refused []bool // at least once
}

func newAlgorithmMode(o *Options) (*algorithmMode, error) {
	m := &algorithmMode{burst: uint64(o.Burst), contests: make(map[*client]*contest)}
	var err error
	if m.limitMode, err = newLimitMode(o); err != nil {
		return nil, err
	}
	m.clients.bound = o.MaxKeys
	window, err := algorithm.Window(o.Rate.limit(o.Burst))
	if err != nil {
		return nil, fmt.Errorf("--algorithm: %w", err)
	}
	m.window = uint64(window)
	for _, name := range o.Algorithms {
		if algorithm.New[name] == nil {
			return nil, fmt.Errorf("--algorithm: %q: want one of %s", name,
				strings.Join(algorithm.Names, ", "))
		}
		m.outcomes = append(m.outcomes, AlgorithmOutcome{Algorithm: name})
	}
	return m, nil
}

func (m *algorithmMode) decide(p pending) (granted bool, err error) {
	cost, err := m.clients.check(p, "--algorithm")
	if err != nil {
		return false, err
	}
	c := m.contests[p.client]
	if c == nil {
		c = &contest{refused: make([]bool, len(m.outcomes))}
		for _, o := range m.outcomes {
			c.takes = append(c.takes, algorithm.New[o.Algorithm](m.burst, m.window))
		}
		m.contests[p.client] = c
	}
	for i, take := range c.takes {
		if take(uint64(p.time), cost) {
			continue
		}
		if m.outcomes[i].Refused++; !c.refused[i] {
			c.refused[i] = true
			m.outcomes[i].KeysRefused++
		}
	}
	return m.limitMode.decide(p)
}

func (m *algorithmMode) fill(rep *Report) {
	m.limitMode.fill(rep)
	rep.Algorithms = m.outcomes
}

func (rep *Report) algorithmTable() table {
	t := table{ID: "algorithms", Title: "Other algorithms under this limit",
		Head: []string{"refused", "of requests", rep.thing() + "s refused"}, Of: "algorithm"}
	if len(rep.Algorithms) == 0 {
		return t
	}
	bucket := AlgorithmOutcome{"token-bucket", rep.Limit.Refused, rep.Limit.KeysRefused}
	for _, o := range append([]AlgorithmOutcome{bucket}, rep.Algorithms...) {
		t.add(o.Algorithm, grouped(o.Refused), percent(share(o.Refused, rep.Requests)),
			grouped(o.KeysRefused))
	}
	return t
}
