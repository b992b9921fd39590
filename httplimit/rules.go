package httplimit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
	"github.com/seed-181794aa/ratelimit/internal/fields"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// compiled is a policy prepared for requests. It is immutable.
type compiled struct {
	liveSettings
	except        []exception
	sets          []*set
	rules         []*rule // of all sets, with their fallbacks, in order
	unverifiedJWT bool
	delays        bool  // an enforced rule delays
	maxWaiting    int64 // requests
}

type set struct {
	policy.Selector
	// Shadow rules must not change which enforced rules apply, but must apply where they would
	// if they were enforced. So there are two arrangements: ladders has the enforced rules.
	// withShadows has all rules, and collect takes only the shadow rules from it.
	ladders, withShadows []ladder
	fallback             []*rule
	rules                []*rule // all, with the fallback
}

type exception struct {
	policy.Selector
	networks []netip.Prefix
}

type condition struct {
	source
	holds func(value string) bool
}

type rule struct {
	policy.Rule
	base     string // the name without the prefix of a parent network
	isParent bool   // so the rule applies to IPv6 addresses only
	set, id  string // see ruleID
	sources  []source
	price    pricing
	ruleText
	*ruleState
	control  *control       // nil if the rate is fixed
	classes  *choice[class] // nil if there are none
	tiers    *choice[*rule] // the rules with the limits of the tiers; nil if there are none
	tierName string         // if this is one of them

	tierIndex int // in the table

	conditions []condition
	except     []exception
}

type compilation struct {
	l      *Limiter
	policy *policy.Policy
	label  func(set, name string) string
	errs   policy.Problems
}

// compile makes p ready. A rule that takes the place of an old one keeps its state, which still has
// the old limit: see setLimits.
func (l *Limiter) compile(p *policy.Policy, olds map[string]*rule) (*compiled, error) {
	if p == nil {
		return nil, errors.New("the policy is nil: want one of Rules or ParsePolicy")
	}
	out, errs := l.arrange(p)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, r := range out.rules {
		old := olds[r.id]
		var err error
		if r.ruleState, err = l.inherit(r, old); err != nil {
			return nil, fmt.Errorf("rule %q: %w", r.Name, err)
		}
		if r.tiers != nil {
			for _, t := range r.tiers.values {
				t.ruleState, t.tierIndex = r.ruleState, r.ruleState.tiers[t.tierName]
			}
		}
		if err := l.addControl(r, old); err != nil {
			return nil, err
		}
		out.delays = out.delays || r.OnLimit == policy.Delay && !r.Shadow
	}
	return out, nil
}

// arrange is compile without the states of the rules. It returns everything that is wrong with the
// policy.
func (l *Limiter) arrange(p *policy.Policy) (*compiled, policy.Problems) {
	b := &compilation{l: l, policy: p, label: p.Labels(), errs: p.Check()}
	out := &compiled{
		unverifiedJWT: p.UnverifiedJWT, maxWaiting: int64(cmp.Or(p.MaxWaiting, 1000)),
		except: b.newExceptions(p.Except, "except"),
	}
	for i := range p.Sets {
		s := &p.Sets[i]
		c := &set{Selector: normalized(s.Selector, l.foldPaths)}
		var rules []*rule // without the fallback
		for r, path := range p.AllOf(i) {
			made := b.newRules(s, r, path)
			c.rules = append(c.rules, made...)
			if r == s.Fallback {
				c.fallback = made
			} else {
				rules = append(rules, made...)
			}
		}
		out.rules = append(out.rules, c.rules...)
		isShadow := func(r *rule) bool { return r.Shadow }
		if slices.ContainsFunc(rules, isShadow) {
			c.withShadows = newLadders(s.Evaluation, rules)
		}
		c.ladders = newLadders(s.Evaluation, slices.DeleteFunc(rules, isShadow))
		out.sets = append(out.sets, c)
	}
	return out, b.errs
}

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
	except := b.newExceptions(r.Except, path.Field("except"))
	switch costPath := path.Field("algorithm_config").Field("cost_source"); {
	case r.Cost.Source == policy.ResponseUsage && b.l.usage.Read == nil:
		b.errs.Add(costPath, "needs the option WithUsage, which this program does not set (got %q)",
			r.Cost.Source)
	case isNeverThere(r.Cost.Kind()):
		b.errs.Add(costPath, "is never there, because servers or proxies remove the field (got %q)",
			r.Cost.Source)
	}
	classes := b.newClasses(&r.Priority, path.Field("priority"))
	for i, level := range r.Levels() {
		c := &rule{
			Rule: level, base: r.Name, isParent: i > 0, price: newPricing(r.Cost),
			sources: slices.Clone(sources), conditions: conditions, except: except, classes: classes,
		}
		c.set, c.id = s.Name, ruleID(s.Name, c.Name, r.Keys)
		if c.Shadow = r.Shadow || s.Shadow; c.Shadow {
			c.Adaptive = policy.Adaptive{} // its decisions do not change the load of the downstream
		}
		if c.OnLimit != policy.Delay {
			c.MaxDelay = 0
		}
		for j, k := range r.Keys {
			if bits, _ := policy.PrefixesOf(k); i < len(bits) {
				networks := b.l.address.WithIPv6Bits(bits[i])
				c.sources[j].name = "ip:address/" + strconv.Itoa(bits[i])
				c.sources[j].networks = &networks
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

func (b *compilation) newExceptions(exceptions []policy.Exception, path policy.Path) (
	all []exception,
) {
	for i, e := range exceptions {
		c := exception{Selector: normalized(e.Selector, b.l.foldPaths)}
		for j, text := range e.Networks {
			network, ok := clientaddr.ParseNetwork(text)
			if !ok {
				b.errs.Add(path.Index(i).Field("ip:address").Index(j), "%s (got %q)", mustBeNetwork, text)
			}
			c.networks = append(c.networks, network)
		}
		all = append(all, c)
	}
	return all
}

// ruleState is what a rule keeps when the policy changes: its buckets and its counts.
type ruleState struct {
	limiters []tb.StoreLimiter    // by the tier of the table
	table    *cas.Limiter[string] // has the buckets if they are in a Memory, and is nil otherwise

	tiers  map[string]int // by name, from 1 on; a request without one has 0; needs Limiter.reload
	counts [stripes]counts
	delays delayCounts

	settled, estimated atomic.Uint64 // settlements
}

// newState returns a state for r. Its buckets are full, unless the store has them already.
func (l *Limiter) newState(r *rule) (s *ruleState, err error) {
	s = &ruleState{tiers: map[string]int{}}
	limits := s.place(r)
	if s.limiters, err = l.store.Limiters(r.id, limits); err != nil {
		return nil, err
	}
	if len(s.limiters) != len(limits) || slices.Contains(s.limiters, nil) {
		return nil, nonsense(l.store, "%d limiters, want %d, and none that is nil", len(s.limiters),
			len(limits))
	}
	if m, ok := s.limiters[0].(*memoryLimiter); ok {
		s.table = m.Limiter
	}
	_, err = l.charge(s.limiters[0], "", r.price.fallback)
	return s, err
}

// ruleID returns the name of a rule in a Store. Two rules with the same id have the same buckets:
// one of this policy and one of the next, of another process or of a snapshot. An id without set
// has one colon.
func ruleID(set, name string, keys []string) string {
	keys = policy.CanonicalKeys(keys)
	for i, key := range keys {
		keys[i] = url.QueryEscape(key)
	}
	id := url.QueryEscape(name) + ":" + strings.Join(keys, ",")
	if set == "" {
		return id
	}
	return url.QueryEscape(set) + ":" + id
}

// ladder is a list of groups: the rules with the same Match. Only its first group that has a rule
// that applies is used. The three evaluations are three ways to make ladders.
type ladder [][]*rule

func newLadders(e policy.Evaluation, rules []*rule) (all []ladder) {
	name := func(r *rule) string { return r.base }
	ladderOf, groupOf := func(*rule) string { return "" }, name // FirstMatch: one ladder of rules
	switch e {
	case policy.AllMatch: // each rule is a ladder
		ladderOf = name
	case policy.Ladders:
		groupOf = (*rule).matchText
		ladderOf = func(r *rule) string { // the same if and only if the Keys are
			return fmt.Sprintf("%q", slices.Sorted(slices.Values(policy.CanonicalKeys(r.Keys))))
		}
	}
	for _, ladder := range grouped(rules, ladderOf) {
		all = append(all, grouped(ladder, groupOf))
	}
	return all
}

// grouped puts the rules that have the same text in a group, in the order of the first ones.
func grouped(rules []*rule, text func(*rule) string) (groups [][]*rule) {
	indexes := map[string]int{}
	for _, r := range rules {
		i, ok := indexes[text(r)]
		if !ok {
			i = len(groups)
			indexes[text(r)], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// matchText is the same text for two rules if and only if their Match is the same.
func (r *rule) matchText() string {
	pairs := map[string]string{}
	for k, v := range r.Match {
		pairs[policy.CanonicalKey(k)] = v
	}
	return fmt.Sprintf("%q", pairs) // in the order of the keys
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

func (l *ruleText) detail(r *policy.Rule, cost float64) string {
	text := strconv.FormatFloat(cost, 'g', -1, 64)
	if cost > float64(r.Limit.Capacity) {
		return "Rule " + l.label + " never has more than " + l.text.Quota + " tokens. This request " +
			"costs " + text + ", so it can never fit."
	}
	return "Rule " + l.label + " has too few tokens left for this request, which costs " + text + "."
}
