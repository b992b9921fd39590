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

type contest struct {
	burst, window uint64
	outcomes      []AlgorithmOutcome
	contestants   map[*client][]contestant // one for each algorithm
}

type contestant struct {
	take    algorithm.Take
	refused bool // at least once
}

func newContest(o *Options) (*contest, error) {
	window, err := algorithm.Window(o.Rate.limit(o.Burst))
	if err != nil {
		return nil, fmt.Errorf("--algorithm: %w", err)
	}
	c := &contest{uint64(o.Burst), uint64(window), nil, make(map[*client][]contestant)}
	for _, name := range o.Algorithms {
		if algorithm.New[name] == nil {
			return nil, fmt.Errorf("--algorithm: %q: want one of %s", name,
				strings.Join(algorithm.Names, ", "))
		}
		c.outcomes = append(c.outcomes, AlgorithmOutcome{Algorithm: name})
	}
	return c, nil
}

func (c *contest) decide(p pending) {
	all := c.contestants[p.client]
	if all == nil {
		for _, o := range c.outcomes {
			all = append(all, contestant{take: algorithm.New[o.Algorithm](c.burst, c.window)})
		}
		c.contestants[p.client] = all
	}
	for i := range all {
		if all[i].take(uint64(p.time)) {
			continue
		}
		if c.outcomes[i].Refused++; !all[i].refused {
			all[i].refused = true
			c.outcomes[i].KeysRefused++
		}
	}
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
