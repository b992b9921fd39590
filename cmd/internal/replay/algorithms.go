package replay

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/algorithm"
)

// AlgorithmOutcome has the decisions of one algorithm.
type AlgorithmOutcome struct {
	// Algorithm is the name in --algorithm.
	Algorithm string `json:"algorithm"`
	// Granted and Refused count requests. RefusedShare is the share of the refused ones.
	Granted      uint64  `json:"granted"`
	Refused      uint64  `json:"refused"`
	RefusedShare float64 `json:"refused_share"`
	// KeysRefused is how many keys were refused at least once.
	KeysRefused uint64 `json:"keys_refused"`
	// BoundInWindow is the most tokens that the algorithm grants a key in any interval as long as a
	// window.
	BoundInWindow float64 `json:"bound_in_window"`
}

// algorithmMode decides requests by several algorithms besides a limit.
type algorithmMode struct {
	*limitMode
	limit      *algorithm.Limit
	contenders []*contender
	maxKeys    int
}

// contender is one algorithm, with a limiter for each key.
type contender struct {
	outcome AlgorithmOutcome
	keys    map[string]*keyLimiter
}

// keyLimiter decides the requests of a key, whose time never steps back.
type keyLimiter struct {
	take    algorithm.Take
	latest  int64
	refused bool // at least once
}

func newAlgorithmMode(o *Options) (*algorithmMode, error) {
	m := &algorithmMode{maxKeys: o.MaxKeys}
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
		if _, err := algorithm.New(name, m.limit); err != nil {
			return nil, fmt.Errorf("--algorithm: %w", err)
		}
		m.contenders = append(m.contenders, &contender{
			outcome: AlgorithmOutcome{
				Algorithm: name, BoundInWindow: algorithm.Bound(name, m.limit, m.limit.Window()),
			},
			keys: make(map[string]*keyLimiter),
		})
	}
	return m, nil
}

func (m *algorithmMode) decide(p pending, key []byte) (granted bool, err error) {
	for _, c := range m.contenders {
		k := c.keys[string(key)]
		if k == nil {
			if len(c.keys) == m.maxKeys {
				return false, fmt.Errorf("the log has more than %d keys for --algorithm:"+
					" want a greater --max-keys", m.maxKeys)
			}
			take, err := algorithm.New(c.outcome.Algorithm, m.limit)
			if err != nil {
				return false, err
			}
			k = &keyLimiter{take: take}
			c.keys[string(key)] = k
		}
		k.latest = max(k.latest, p.time)
		c.count(k, k.take(uint64(k.latest), m.limit.Units(p.cost)))
	}
	return m.limitMode.decide(p, key)
}

// count counts a decision on a key.
func (c *contender) count(k *keyLimiter, granted bool) {
	if granted {
		c.outcome.Granted++
		return
	}
	if c.outcome.Refused++; !k.refused {
		k.refused = true
		c.outcome.KeysRefused++
	}
}

func (m *algorithmMode) fill(res *Result) {
	m.limitMode.fill(res)
	res.Report.Window = m.limit.Window().Seconds()
	for _, c := range m.contenders {
		o := c.outcome
		o.RefusedShare = share(o.Refused, o.Granted+o.Refused)
		res.Report.Algorithms = append(res.Report.Algorithms, o)
	}
}

// writeAlgorithms writes a table of the algorithms, after the token bucket.
func (rep *Report) writeAlgorithms(b *strings.Builder) {
	window := time.Duration(rep.Window * float64(time.Second))
	fmt.Fprintf(b, "\nOther algorithms under this limit, with windows of %s:\n\n",
		durationText(window))
	table := columns(b)
	fmt.Fprintln(table, "algorithm\trefused\tof requests\tkeys refused\tbound in a window\t")
	row := func(name string, refused, keys uint64, bound float64) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t\n", name, grouped(refused),
			percent(share(refused, rep.Requests)), grouped(keys), grouped(uint64(bound)))
	}
	l := rep.Limit
	row("token-bucket", l.Refused, l.KeysRefused, 2*float64(l.Burst))
	for _, o := range rep.Algorithms {
		row(o.Algorithm, o.Refused, o.KeysRefused, o.BoundInWindow)
	}
	table.Flush()
}
