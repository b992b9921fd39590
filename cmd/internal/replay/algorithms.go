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
	keys          map[string]*contest
	maxKeys       int
}

// contest has what decides the requests of a key: an element for each algorithm.
type contest struct {
	takes   []algorithm.Take
	refused []bool // at least once
}

func newAlgorithmMode(o *Options) (*algorithmMode, error) {
	m := &algorithmMode{burst: uint64(o.Burst), maxKeys: o.MaxKeys, keys: make(map[string]*contest)}
	var err error
	if m.limitMode, err = newLimitMode(o); err != nil {
		return nil, err
	}
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

func (m *algorithmMode) decide(p pending, key []byte) (granted bool, err error) {
	cost, err := wholeCost(p.cost, "--algorithm")
	if err != nil {
		return false, err
	}
	c := m.keys[string(key)]
	if c == nil {
		if len(m.keys) == m.maxKeys {
			return false, fmt.Errorf("the log has more than %d keys for --algorithm:"+
				" want a greater --max-keys", m.maxKeys)
		}
		c = &contest{refused: make([]bool, len(m.outcomes))}
		for _, o := range m.outcomes {
			c.takes = append(c.takes, algorithm.New[o.Algorithm](m.burst, m.window))
		}
		m.keys[string(key)] = c
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
	return m.limitMode.decide(p, key)
}

func (m *algorithmMode) fill(res *Result) {
	m.limitMode.fill(res)
	res.Report.Algorithms = m.outcomes
}

// writeAlgorithms writes a table of the algorithms, after the token bucket.
func (rep *Report) writeAlgorithms(b *strings.Builder) {
	b.WriteString("\nOther algorithms under this limit:\n\n")
	table := columns(b)
	fmt.Fprintln(table, "algorithm\trefused\tof requests\tkeys refused\t")
	bucket := AlgorithmOutcome{"token-bucket", rep.Limit.Refused, rep.Limit.KeysRefused}
	for _, o := range append([]AlgorithmOutcome{bucket}, rep.Algorithms...) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t\n", o.Algorithm, grouped(o.Refused),
			percent(share(o.Refused, rep.Requests)), grouped(o.KeysRefused))
	}
	table.Flush()
}
