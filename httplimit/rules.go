package httplimit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unsafe"

	"github.com/seed-181794aa/ratelimit/tb"
)

// compiled is a policy prepared for requests. It is immutable.
type compiled struct {
	sets          []*set
	rules         []*rule // of all sets, with their fallbacks, in order
	firstKind     kind    // the lowest kind of the rules' limiters
	unverifiedJWT bool
}

type set struct {
	Selector
	// Shadow rules must not change which enforced rules apply, but must apply where they would
	// if they were enforced. So there are two arrangements: ladders has the enforced rules.
	// withShadows has all rules, and collect takes only the shadow rules from it.
	ladders, withShadows []ladder
	fallback             *rule
}

// ladder is a list of groups. Only its first group that has a rule that applies is used. The
// three evaluations are three ways to make ladders.
type ladder []group

// group is the rules with the same Match.
type group []*rule

type condition struct {
	source
	want string
}

// rule is a Rule prepared for requests.
type rule struct {
	Rule
	identity
	sources []source
	price   pricing
	ruleText
	*ruleState

	conditions []condition
}

// identity is what two rules must have in common for the second to take over the buckets and
// counts of the first.
type identity struct {
	set, name string
	keys      string // in order
	limit     tb.Limit
}

// compile checks p and prepares it for requests. A rule takes over the state of the rule in
// before that has the same identity.
func (l *Limiter) compile(p *Policy, before *compiled) (*compiled, error) {
	errs := p.check()
	out := &compiled{firstKind: inProcess, unverifiedJWT: p.UnverifiedJWT}
	labels := p.labels() // in the order in which the rules are made
	for i := range p.Sets {
		s := &p.Sets[i]
		c := &set{Selector: s.Selector.normalize()}
		var rules []*rule
		for r, path := range s.all(p.setPath(i)) {
			rules = append(rules, l.newRule(s, r, path, labels[len(out.rules)+len(rules)], &errs))
		}
		out.rules = append(out.rules, rules...) // a copy
		if s.Fallback != nil {
			c.fallback = rules[len(rules)-1]
			rules = rules[:len(rules)-1]
		}
		isShadow := func(r *rule) bool { return r.Shadow }
		if slices.ContainsFunc(rules, isShadow) {
			c.withShadows = newLadders(s.Evaluation, rules)
		}
		c.ladders = newLadders(s.Evaluation, slices.DeleteFunc(rules, isShadow))
		out.sets = append(out.sets, c)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	states := map[identity]*ruleState{}
	if before != nil {
		for _, r := range before.rules {
			states[r.identity] = r.ruleState
		}
	}
	for _, r := range out.rules {
		if r.ruleState = states[r.identity]; r.ruleState == nil {
			var err error
			if r.ruleState, err = l.newState(r); err != nil {
				return nil, fmt.Errorf("rule %q: %w", r.Name, err)
			}
		}
		out.firstKind = min(out.firstKind, r.kind())
	}
	return out, nil
}

func (l *Limiter) newRule(s *RuleSet, r *Rule, path, label string, errs *problems) *rule {
	c := &rule{Rule: *r, price: newPricing(r.Cost)}
	c.identity = identity{s.Name, r.Name, fmt.Sprintf("%q", canonicals(r.Keys)), r.Limit}
	c.Shadow = r.Shadow || s.Shadow
	for i, k := range r.Keys {
		c.sources = append(c.sources, l.newSource(k, index(field(path, "limit_keys"), i), errs))
	}
	for _, k := range slices.Sorted(maps.Keys(r.Match)) {
		source := l.newSource(k, field(field(path, "match"), k), errs)
		c.conditions = append(c.conditions, condition{source, r.Match[k]})
	}
	if r.Limit.Validate() == nil {
		c.ruleText = newRuleText(label, r)
	}
	return c
}

// newLadders arranges rules as the evaluation demands.
func newLadders(e Evaluation, rules []*rule) (all []ladder) {
	type groupID struct{ ladder, group string }
	ladders, groups := map[string]int{}, map[groupID]int{} // indexes
	for _, r := range rules {
		id := groupID{"", r.Name} // FirstMatch: one ladder, and each rule is a group
		switch e {
		case AllMatch: // each rule is a ladder
			id.ladder = r.Name
		case Ladders:
			keys := canonicals(r.Keys)
			slices.Sort(keys)
			id = groupID{fmt.Sprintf("%q", keys), r.matchText()}
		}
		i, ok := ladders[id.ladder]
		if !ok {
			i = len(all)
			ladders[id.ladder] = i
			all = append(all, nil)
		}
		j, ok := groups[id]
		if !ok {
			j = len(all[i])
			groups[id] = j
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

// matchText is the same text for two rules if and only if their Match is the same.
func (r *rule) matchText() string {
	var pairs []string
	for k, v := range r.Match {
		pairs = append(pairs, fmt.Sprintf("%q%q", canonical(k), v))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "")
}

// findRules collects the rules that apply to the request in c.entries.
func (c *call) findRules() {
	for _, s := range c.policy.sets {
		if !s.picks(c.r) {
			continue
		}
		matched := c.collect(s.ladders, false)
		matchedWithShadows := c.collect(s.withShadows, true) || matched
		if f := s.fallback; f != nil && (!matched && !f.Shadow || !matchedWithShadows) &&
			c.matches(f.conditions) {
			c.pushEntry(f)
		}
	}
}

// collect adds the rules of each ladder that apply, or only the shadow rules among them. It
// reports whether the Match of any rule holds.
func (c *call) collect(ladders []ladder, shadowsOnly bool) (matched bool) {
	for _, ladder := range ladders {
		for _, g := range ladder {
			if !c.matches(g[0].conditions) {
				continue
			}
			matched = true
			applies := false
			for _, r := range g {
				if !c.pushEntry(r) {
					continue
				}
				applies = true
				if shadowsOnly && !r.Shadow {
					c.popEntry()
				}
			}
			if applies {
				break
			}
		}
	}
	return matched
}

func (c *call) matches(conditions []condition) bool {
	for i := range conditions {
		if conditions[i].value(c) != conditions[i].want {
			return false
		}
	}
	return true
}

// pushEntry adds a rule with its key in this request. It adds nothing and reports false if the
// request lacks a part of the key and the rule then does not apply.
func (c *call) pushEntry(r *rule) bool {
	n := len(c.entries)
	c.entries = slices.Grow(c.entries, 1)[:n+1]
	e := &c.entries[n] // filled in place, because an entry is large
	e.rule, e.cost = r, r.price.cost(c.r)
	if r.byAddr != nil {
		e.network = c.network()
		return true
	}
	start := len(c.keys)
	for i := range r.sources {
		var ok bool
		if c.keys, ok = r.sources[i].appendPart(c.keys, c); !ok && r.OnMissing != Shared {
			if r.OnMissing == Skip {
				c.popEntry()
				return false
			}
			e.missingKey = cmp.Or(e.missingKey, r.sources[i].name) // the first
		}
	}
	// The key is a view of c.keys, which is only appended to until the call ends. An array
	// that c.keys has outgrown stays as it is. Limiters of tb/cas copy the keys that they
	// keep, and end clears the charges.
	if key := c.keys[start:]; len(key) > 0 {
		e.key = unsafe.String(&key[0], len(key))
	}
	return true
}

// popEntry removes the last entry. Beyond the last entry the array is zero.
func (c *call) popEntry() {
	last := len(c.entries) - 1
	c.entries[last] = entry{}
	c.entries = c.entries[:last]
}
