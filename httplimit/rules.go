package httplimit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/internal/fields"
)

// compiled is a policy prepared for requests. It is immutable.
type compiled struct {
	liveSettings
	sets          []*set
	rules         []*rule // of all sets, with their fallbacks, in order
	settles       bool    // a rule has its cost in the response
	unverifiedJWT bool
	adapts        bool  // the rate of a rule
	delays        bool  // an enforced rule delays
	shadows       bool  // a rule is a shadow rule
	maxWaiting    int64 // requests
}

type set struct {
	policy.Selector
	// Shadow rules must not change which enforced rules apply, but must apply where they would
	// if they were enforced. So there are two arrangements: ladders has the enforced rules.
	// withShadows has all rules, and collect takes only the shadow rules from it.
	ladders, withShadows []ladder
	fallback             []*rule
	firstEnforced        *rule // nil if all rules are shadow rules
}

type condition struct {
	source
	holds func(value string) bool
}

// rule is a policy.Rule prepared for requests.
type rule struct {
	policy.Rule
	base     string // the name without the prefix of a parent network
	isParent bool   // so the rule applies to IPv6 addresses only
	set, id  string // see ruleID
	sources  []source
	price    pricing
	ruleText
	*ruleState
	control  *control // nil if the rate is fixed
	tiers    *tiers   // nil if there are none
	tierName string   // if this is the rule with the limit of a tier

	tierIndex int // in the table

	conditions []condition
}

// compilation is the work of preparing a policy.
type compilation struct {
	l      *Limiter
	policy *policy.Policy
	label  func(set, name string) string
	errs   policy.Problems
}

// compile makes p ready. A rule that is in before, too, keeps its state, which still has the limit
// of before: see setLimits.
func (l *Limiter) compile(p *policy.Policy, before *compiled) (*compiled, error) {
	if p == nil {
		return nil, errors.New("the policy is nil: want one of Rules or ParsePolicy")
	}
	out, errs := l.arrange(p)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	olds := before.byID()
	for _, r := range out.rules {
		old := olds[r.id]
		var err error
		if r.ruleState, err = l.inherit(r, old); err != nil {
			return nil, fmt.Errorf("rule %q: %w", r.Name, err)
		}
		r.share()
		if err := l.addControl(r, old); err != nil {
			return nil, err
		}
		out.adapts = out.adapts || r.control != nil
		out.delays = out.delays || r.OnLimit == policy.Delay && !r.Shadow
		out.shadows = out.shadows || r.Shadow
		out.settles = out.settles || r.price.inResponse
	}
	return out, nil
}

// arrange is compile without the states of the rules. It returns everything that is wrong with the
// policy.
func (l *Limiter) arrange(p *policy.Policy) (*compiled, policy.Problems) {
	b := &compilation{l: l, policy: p, label: p.Labels(), errs: p.Check()}
	out := &compiled{
		unverifiedJWT: p.UnverifiedJWT, maxWaiting: int64(cmp.Or(p.MaxWaiting, defaultMaxWaiting)),
	}
	for i := range p.Sets {
		s := &p.Sets[i]
		c := &set{Selector: normalized(s.Selector, l.foldPaths)}
		var rules []*rule
		fallbackAt := 0
		for r, path := range p.AllOf(i) {
			fallbackAt = len(rules)
			rules = append(rules, b.newRules(s, r, path)...)
		}
		out.rules = append(out.rules, rules...) // a copy
		isShadow := func(r *rule) bool { return r.Shadow }
		isEnforced := func(r *rule) bool { return !r.Shadow }
		if i := slices.IndexFunc(rules, isEnforced); i >= 0 {
			c.firstEnforced = rules[i]
		}
		if s.Fallback != nil {
			c.fallback = rules[fallbackAt:]
			rules = rules[:fallbackAt:fallbackAt]
		}
		if slices.ContainsFunc(rules, isShadow) {
			c.withShadows = newLadders(s.Evaluation, rules)
		}
		c.ladders = newLadders(s.Evaluation, slices.DeleteFunc(rules, isShadow))
		out.sets = append(out.sets, c)
	}
	return out, b.errs
}

// newRules makes a rule ready, and the rules of its parents.
func (b *compilation) newRules(s *policy.RuleSet, r *policy.Rule, path policy.Path) (all []*rule) {
	var sources []source
	for i, k := range r.Keys {
		sources = append(sources, b.newSource(k, path.Field("limit_keys").Index(i)))
	}
	var conditions []condition
	for _, k := range slices.Sorted(maps.Keys(r.Match)) {
		keyPath, v := path.Field("match").Field(k), r.Match[k]
		source := b.newSource(k, keyPath)
		holds, must := source.matcher(v)
		if must != "" && v != "" { // which is an error already
			b.errs.Add(keyPath, "%s (got %q)", must, v)
		}
		conditions = append(conditions, condition{source, holds})
	}
	if r.Cost.Source == policy.ResponseUsage && b.l.usage.Read == nil {
		b.errs.Add(path.Field("algorithm_config").Field("cost_source"),
			"needs the option WithUsage, which this program does not set (got %q)", r.Cost.Source)
	}
	for i, level := range r.Levels() {
		c := &rule{
			Rule: level, base: r.Name, isParent: i > 0, price: newPricing(r.Cost),
			sources: slices.Clone(sources), conditions: conditions,
		}
		c.set, c.id = s.Name, ruleID(s.Name, c.Name, r.Keys)
		c.Shadow = r.Shadow || s.Shadow
		for j, k := range r.Keys {
			if bits, _ := policy.PrefixesOf(k); i < len(bits) {
				c.sources[j].setPrefix(bits[i], &b.l.address)
			}
		}
		if c.Limit.Validate() == nil {
			c.ruleText = newRuleText(b.label(s.Name, c.Name), &c.Rule)
		}
		b.addTiers(c, path)
		all = append(all, c)
	}
	return all
}

// ruleText is the text of a rule in answers that is the same in each of them.
type ruleText struct {
	label string // the name under which clients see the rule
	text  fields.Rule
	slow  bool // less than a token a second

	usualDetail string // of a refusal with the cost of a request that does not state one
}

func newRuleText(label string, r *policy.Rule) ruleText {
	unit := ""
	if r.Cost.Source == policy.ResponseBytes {
		unit = "content-bytes"
	}
	l := ruleText{label: label, text: fields.NewRule(label, uint64(r.Limit.Capacity), r.Limit, unit)}
	// Tokens/Per is less than one a second if Tokens is less than the seconds of Per.
	l.slow = r.Limit.Tokens < ceilSeconds(r.Limit.Per)
	l.usualDetail = l.detail(r, r.Cost.Fallback())
	return l
}

// detail returns the sentence for a client whose request has a cost that r refuses.
func (l *ruleText) detail(r *policy.Rule, cost float64) string {
	text := strconv.FormatFloat(cost, 'g', -1, 64)
	if cost > float64(r.Limit.Capacity) {
		return "Rule " + l.label + " never has more than " + l.text.Quota + " tokens. This request costs " +
			text + ", so it can never fit."
	}
	return "Rule " + l.label + " has too few tokens left for this request, which costs " + text + "."
}
