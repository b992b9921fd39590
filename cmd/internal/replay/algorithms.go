package replay

import (
	"errors"
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

// contest decides requests by several algorithms under one limit.
type contest struct {
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
	algorithm.Limiter
	latest  int64
	refused bool // at least once
}

// newContest returns a contest between the algorithms of o, or nil if there are none.
func newContest(o *Options) (*contest, error) {
	if len(o.Algorithms) == 0 {
		return nil, nil
	}
	if len(o.Rates) != 1 || len(o.Bursts) != 1 {
		return nil, errors.New("--algorithm: want one --rate and one --burst")
	}
	limit, err := algorithm.NewLimit(o.Rates[0].limit(int(o.Bursts[0])))
	if err != nil {
		return nil, fmt.Errorf("--algorithm: %w", err)
	}
	c := &contest{limit: limit, maxKeys: o.MaxKeys}
	for i, name := range o.Algorithms {
		if slices.Contains(o.Algorithms[:i], name) {
			return nil, fmt.Errorf("--algorithm: %s is there twice", name)
		}
		if _, err := algorithm.New(name, limit); err != nil {
			return nil, fmt.Errorf("--algorithm: %w", err)
		}
		c.contenders = append(c.contenders, &contender{
			outcome: AlgorithmOutcome{
				Algorithm: name, BoundInWindow: algorithm.Bound(name, limit, limit.Window()),
			},
			keys: make(map[string]*keyLimiter),
		})
	}
	return c, nil
}

// add decides a request of a key at a time in nanoseconds since 1970.
func (c *contest) add(key string, tokens float64, now int64) error {
	for _, one := range c.contenders {
		k := one.keys[key]
		if k == nil {
			if len(one.keys) == c.maxKeys {
				return fmt.Errorf("--algorithm: the log has more than %d keys: want a greater --max-keys",
					c.maxKeys)
			}
			limiter, err := algorithm.New(one.outcome.Algorithm, c.limit)
			if err != nil {
				return err
			}
			k = &keyLimiter{Limiter: limiter}
			one.keys[key] = k
		}
		k.latest = max(k.latest, now)
		one.count(k, k.Take(uint64(k.latest), c.limit.Units(tokens)))
	}
	return nil
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

// outcomes returns the outcome of each algorithm.
func (c *contest) outcomes() (all []AlgorithmOutcome) {
	for _, one := range c.contenders {
		o := one.outcome
		o.RefusedShare = share(o.Refused, o.Granted+o.Refused)
		all = append(all, o)
	}
	return all
}

// writeAlgorithms writes a table of the algorithms, after the token bucket.
func (rep *Report) writeAlgorithms(b *strings.Builder) {
	window := time.Duration(rep.Window * float64(time.Second))
	fmt.Fprintf(b, "\nOther algorithms under this limit, with windows of %s:\n\n", durationText(window))
	table := columns(b)
	fmt.Fprintln(table, "algorithm\trefused\tof requests\tkeys refused\tbound in a window\t")
	row := func(name string, refused, keys uint64, bound float64) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t\n", name, grouped(refused),
			percent(share(refused, rep.Requests)), grouped(keys), grouped(uint64(bound)))
	}
	l := &rep.Limits[0]
	row("token-bucket", l.Refused, l.KeysRefused, 2*float64(l.Burst))
	for _, o := range rep.Algorithms {
		row(o.Algorithm, o.Refused, o.KeysRefused, o.BoundInWindow)
	}
	table.Flush()
}
