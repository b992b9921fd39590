package httplimit

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// program is a policy made ready to be applied to requests. It is immutable.
type program struct {
	sets          []*set
	rules         []*rule // of all sets, with their fallbacks, in order
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
	set     string
	sources []source
	price   pricing
	labels
	*state

	conditions []condition
}

// state is what outlives a change of policy: the buckets of a rule and what was counted.
// One of the limiters is set.
type state struct {
	addresses *cas.Limiter[netip.Addr] // if the only key is ip:address
	texts     *cas.Limiter[string]
	other     tb.Limiter

	granted, refused, shadowGranted, shadowRefused, errors atomic.Uint64
}

// compile makes p ready, with the state of rules that were there before and are the same.
func (l *Limiter) compile(p *Policy, before *program) (*program, error) {
	errs := p.check()
	out := &program{unverifiedJWT: p.UnverifiedJWT}
	names := map[string]int{}
	for i := range p.Sets {
		for r := range p.Sets[i].all("") {
			names[r.Name]++
		}
	}
	for i := range p.Sets {
		s := &p.Sets[i]
		c := &set{Selector: s.Selector.normalize()}
		var rules []*rule
		for r, at := range s.all(p.place(i)) {
			label := r.Name
			if names[r.Name] > 1 {
				label = s.Name + "/" + r.Name
			}
			rules = append(rules, l.newRule(s, r, at, label, &errs))
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
	for _, r := range out.rules {
		if err := l.open(r, before); err != nil {
			return nil, fmt.Errorf("rule %q: %w", r.Name, err)
		}
	}
	return out, nil
}

func (l *Limiter) newRule(s *RuleSet, r *Rule, at, label string, errs *problems) *rule {
	c := &rule{Rule: *r, set: s.Name, price: newPricing(r.Cost)}
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
		errs.add(path, "there is no extractor for %q", key)
	}
	return s
}

// open gives r its state: that of the same rule before, or a new one.
func (l *Limiter) open(r *rule, before *program) (err error) {
	if before != nil {
		for _, b := range before.rules {
			if b.set == r.set && b.Name == r.Name && b.Limit == r.Limit &&
				slices.Equal(b.Keys, r.Keys) {
				r.state = b.state
				return nil
			}
		}
	}
	r.state = &state{}
	switch {
	case l.newLimiter != nil:
		var other tb.Limiter
		if other, err = l.newLimiter(r.Rule); err != nil {
			return err
		}
		if r.texts, _ = other.(*cas.TokenBucket); r.texts == nil {
			r.other = other
		}
	case len(r.sources) == 1 && r.sources[0].address:
		r.addresses, err = cas.New[netip.Addr](r.Limit, l.core...)
	default:
		r.texts, err = cas.New[string](r.Limit, l.core...)
	}
	return err
}

// ladders arranges rules as the evaluation says.
func ladders(e Evaluation, rules []*rule) (all []ladder) {
	places := map[string]int{}
	for _, r := range rules {
		place := "" // FirstMatch: all in one
		switch e {
		case AllMatch: // each by itself
			place = r.Name
		case Ladders:
			keys := slices.Sorted(slices.Values(r.Keys))
			place = fmt.Sprintf("%q", keys)
		}
		i, ok := places[place]
		if !ok {
			i = len(all)
			places[place] = i
			all = append(all, nil)
		}
		same := func(g group) bool { return maps.Equal(g[0].Match, r.Match) }
		if j := slices.IndexFunc(all[i], same); j >= 0 && e == Ladders {
			all[i][j] = append(all[i][j], r)
			continue
		}
		all[i] = append(all[i], group{r})
	}
	return all
}
