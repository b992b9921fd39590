package httplimit

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// program is a policy made ready to be applied to requests. It is immutable.
type program struct {
	sets          []*set
	rules         []*rule // of all sets, with their fallbacks, in order
	first         kind    // the least that a rule's limiter has
	unverifiedJWT bool
}

type set struct {
	Selector
	// Shadow rules must not change which others apply, and should see what would happen
	// if they were not shadow rules. So there are two arrangements, of the rules without
	// the shadow rules, and of all; of the latter only shadow rules are taken.
	ladders, shadows []ladder
	fallback         *rule
}

// ladder is a list of groups of which the first that applies is the one that counts.
// The three evaluations are three ways to make ladders.
type ladder []group

// group is rules with the same Match.
type group []*rule

type condition struct {
	source
	want string
}

// rule is a Rule made ready.
type rule struct {
	Rule
	identity
	sources []source
	price   pricing
	labels
	*state

	conditions []condition
}

// identity is what makes two rules the same one, so that the second has the buckets of
// the first.
type identity struct {
	set, name string
	keys      string // in order
	limit     tb.Limit
}

// state is what outlives a change of policy: the buckets of a rule and what was counted.
// One of the limiters is set.
type state struct {
	addresses *cas.Limiter[netip.Addr] // if the only key is ip:address
	texts     *cas.Limiter[string]
	foreign   Charger
	other     tb.Limiter

	counts [stripes]counts
}

// compile makes p ready, with the state of rules that were there before and are the same.
func (l *Limiter) compile(p *Policy, before *program) (*program, error) {
	errs := p.check()
	out := &program{first: own, unverifiedJWT: p.UnverifiedJWT}
	labels := p.labels() // in the order in which the rules are made
	for i := range p.Sets {
		s := &p.Sets[i]
		c := &set{Selector: s.Selector.normalize()}
		var rules []*rule
		for r, at := range s.all(p.place(i)) {
			rules = append(rules, l.newRule(s, r, at, labels[len(out.rules)+len(rules)], &errs))
		}
		out.rules = append(out.rules, rules...) // a copy
		if s.Fallback != nil {
			c.fallback = rules[len(rules)-1]
			rules = rules[:len(rules)-1]
		}
		isShadow := func(r *rule) bool { return r.Shadow }
		if slices.ContainsFunc(rules, isShadow) {
			c.shadows = ladders(s.Evaluation, rules)
		}
		c.ladders = ladders(s.Evaluation, slices.DeleteFunc(rules, isShadow))
		out.sets = append(out.sets, c)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	states := map[identity]*state{}
	if before != nil {
		for _, r := range before.rules {
			states[r.identity] = r.state
		}
	}
	for _, r := range out.rules {
		if r.state = states[r.identity]; r.state == nil {
			if err := l.open(r); err != nil {
				return nil, fmt.Errorf("rule %q: %w", r.Name, err)
			}
		}
		out.first = min(out.first, r.kind())
	}
	return out, nil
}

func (l *Limiter) newRule(s *RuleSet, r *Rule, at, label string, errs *problems) *rule {
	c := &rule{Rule: *r, price: newPricing(r.Cost)}
	c.identity = identity{s.Name, r.Name, fmt.Sprintf("%q", canonicals(r.Keys)), r.Limit}
	c.Shadow = r.Shadow || s.Shadow
	for i, k := range r.Keys {
		c.sources = append(c.sources, l.source(k, index(field(at, "limit_keys"), i), errs))
	}
	for _, k := range slices.Sorted(maps.Keys(r.Match)) {
		source := l.source(k, field(field(at, "match"), k), errs)
		c.conditions = append(c.conditions, condition{source, r.Match[k]})
	}
	if r.Limit.Validate() == nil {
		c.labels = newLabels(label, r)
	}
	return c
}

func (l *Limiter) source(key, path string, errs *problems) source {
	s, ok := newSource(key, l.extractors)
	if !ok {
		errs.add(path, "has no extractor (got %q)", key)
	}
	return s
}

// open gives r a state of its own.
func (l *Limiter) open(r *rule) (err error) {
	r.state = &state{}
	switch {
	case l.newLimiter != nil:
		return l.plug(r)
	case len(r.sources) == 1 && r.sources[0].address:
		r.addresses, err = cas.New[netip.Addr](r.Limit, l.core...)
	default:
		r.texts, err = cas.New[string](r.Limit, l.core...)
	}
	return err
}

// plug asks the program for a limiter.
func (l *Limiter) plug(r *rule) error {
	other, err := l.newLimiter(r.Rule)
	switch other := other.(type) {
	case nil:
		if err == nil {
			err = errors.New("there is no limiter")
		}
	case *cas.TokenBucket:
		r.texts = other
	case Charger:
		r.foreign = other
	default:
		r.other = other
	}
	return err
}

// ladders arranges rules as the evaluation says.
func ladders(e Evaluation, rules []*rule) (all []ladder) {
	type place struct{ ladder, group string }
	indexes, groups := map[string]int{}, map[place]int{}
	for _, r := range rules {
		p := place{"", r.Name} // FirstMatch: all in one ladder, each a group
		switch e {
		case AllMatch: // each by itself
			p.ladder = r.Name
		case Ladders:
			keys := canonicals(r.Keys)
			slices.Sort(keys)
			p = place{fmt.Sprintf("%q", keys), r.matchText()}
		}
		i, ok := indexes[p.ladder]
		if !ok {
			i = len(all)
			indexes[p.ladder] = i
			all = append(all, nil)
		}
		j, ok := groups[p]
		if !ok {
			j = len(all[i])
			groups[p] = j
			all[i] = append(all[i], nil)
		}
		all[i][j] = append(all[i][j], r)
	}
	return all
}

// canonicals returns the canonical spelling of each key.
func canonicals(keys []string) []string {
	keys = slices.Clone(keys)
	for i, k := range keys {
		keys[i] = canonical(k)
	}
	return keys
}

// matchText is the same for rules with the same Match, and for no others.
func (r *rule) matchText() string {
	var pairs []string
	for k, v := range r.Match {
		pairs = append(pairs, fmt.Sprintf("%q%q", canonical(k), v))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "")
}
