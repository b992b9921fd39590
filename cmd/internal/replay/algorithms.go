package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/cmd/internal/algorithm"
)

// AlgorithmOutcome has the decisions of one algorithm.
type AlgorithmOutcome struct {
	// Algorithm is the name in --algorithm.
	Algorithm string `json:"algorithm"`
	// Granted and Refused count requests.
	Granted uint64 `json:"granted"`
	Refused uint64 `json:"refused"`
	// KeysRefused is how many keys were refused at least once.
	KeysRefused uint64 `json:"keys_refused"`
}

// algorithmMode decides requests by several algorithms besides a limit.
type algorithmMode struct {
	*limitMode
	limit    *algorithm.Limit
	outcomes []AlgorithmOutcome
	keys     map[string]*contest
	maxKeys  int
}

// contest has what decides the requests of a key, whose time never steps back: an element for each
// algorithm.
type contest struct {
	latest  int64
	takes   []algorithm.Take
	refused []bool // at least once
}

func newAlgorithmMode(o *Options) (*algorithmMode, error) {
	m := &algorithmMode{maxKeys: o.MaxKeys, keys: make(map[string]*contest)}
	var err error
	if m.limitMode, err = newLimitMode(o); err != nil {
		return nil, err
	}
	if m.limit, err = algorithm.NewLimit(o.Rate.limit(int(o.Burst))); err != nil {
		return nil, fmt.Errorf("--algorithm: %w", err)
	}
	for i, name := range o.Algorithms {
		if slices.Contains(o.Algorithms[:i], name) {
			return nil, fmt.Errorf("--algorithm: %s is there twice", name)
		}
		m.outcomes = append(m.outcomes, AlgorithmOutcome{Algorithm: name})
	}
	if _, err = m.newContest(); err != nil {
		return nil, fmt.Errorf("--algorithm: %w", err)
	}
	return m, nil
}

func (m *algorithmMode) newContest() (*contest, error) {
	c := &contest{refused: make([]bool, len(m.outcomes))}
	for _, o := range m.outcomes {
		take, err := algorithm.New(o.Algorithm, m.limit)
		if err != nil {
			return nil, err
		}
		c.takes = append(c.takes, take)
	}
	return c, nil
}

func (m *algorithmMode) decide(p pending, key []byte) (granted bool, err error) {
	c := m.keys[string(key)]
	if c == nil {
		if len(m.keys) == m.maxKeys {
			return false, fmt.Errorf("the log has more than %d keys for --algorithm:"+
				" want a greater --max-keys", m.maxKeys)
		}
		if c, err = m.newContest(); err != nil {
			return false, err
		}
		m.keys[string(key)] = c
	}
	c.latest = max(c.latest, p.time)
	for i, take := range c.takes {
		o := &m.outcomes[i]
		if take(uint64(c.latest), m.limit.Units(p.cost)) {
			o.Granted++
			continue
		}
		if o.Refused++; !c.refused[i] {
			c.refused[i] = true
			o.KeysRefused++
		}
	}
	return m.limitMode.decide(p, key)
}

func (m *algorithmMode) fill(res *Result) {
	m.limitMode.fill(res)
	res.Report.Window = m.limit.Window().Seconds()
	res.Report.Algorithms = slices.Clone(m.outcomes)
}

// writeAlgorithms writes a table of the algorithms, after the token bucket.
func (rep *Report) writeAlgorithms(b *strings.Builder) {
	fmt.Fprintf(b, "\nOther algorithms under this limit, with windows of %v s:\n\n", rep.Window)
	table := columns(b)
	fmt.Fprintln(table, "algorithm\trefused\tof requests\tkeys refused\t")
	bucket := AlgorithmOutcome{"token-bucket", 0, rep.Limit.Refused, rep.Limit.KeysRefused}
	for _, o := range append([]AlgorithmOutcome{bucket}, rep.Algorithms...) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t\n", o.Algorithm, grouped(o.Refused),
			percent(share(o.Refused, rep.Requests)), grouped(o.KeysRefused))
	}
	table.Flush()
}
