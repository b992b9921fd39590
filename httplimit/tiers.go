package httplimit

import (
	"slices"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// spareTiers is how many tiers a table has at least. The names of a later policy get those that are
// left. A table of 128 tiers takes some 50 kB more.
const spareTiers = 128

// tiers are the tiers of a rule, prepared for requests.
type tiers struct {
	by    source
	rules map[string]*rule // by the normalized name; each is the rule with the limit of the tier
}

// addTiers makes the tiers of a rule ready, which clients see by the rule's label.
func (b *compilation) addTiers(r *rule, path policy.Path) {
	if len(r.Tiers.Limits) == 0 {
		return
	}
	by := path.Field("algorithm_config").Field("tiers").Field("by")
	r.tiers = &tiers{by: b.newSource(r.Tiers.By, by), rules: map[string]*rule{}}
	for _, name := range r.Tiers.Names() {
		t := *r
		t.tiers, t.tierName, t.Limit = nil, name, r.Tiers.Limits[name]
		if t.Limit.Validate() == nil {
			t.ruleText = newRuleText(r.label, &t.Rule)
		}
		limitPath := path.Field("algorithm_config").Field("tiers").Field("limits").Field(name)
		name = r.tiers.by.checkName(name, limitPath, b)
		if other := r.tiers.rules[name]; other != nil {
			b.errs.Add(limitPath, "must not have the same values as the tier %q", other.tierName)
		}
		r.tiers.rules[name] = &t
	}
}

// tierOf returns the rule with the limit of the request's tier. It reports repeated if the request
// has several values of the key that names the tier.
func (r *rule) tierOf(c *call) (tier *rule, repeated bool) {
	name, repeated := r.tiers.by.keyValue(c)
	if t := r.tiers.rules[name]; t != nil && !repeated {
		return t, false
	}
	return r, repeated
}

// place gives the tiers of a rule their places, and returns the limits of all places.
func (s *ruleState) place(r *rule) []tb.Limit {
	limits := []tb.Limit{r.Limit}
	if r.tiers == nil {
		return limits
	}
	for _, name := range r.Tiers.Names() {
		s.tiers[name] = len(limits)
		limits = append(limits, r.Tiers.Limits[name])
	}
	count := min(max(2*len(limits), spareTiers), cas.MaxTiers)
	return append(limits, slices.Repeat(limits[:1], count-len(limits))...)
}

// share gives the rules of the tiers the state of their rule.
func (r *rule) share() {
	if r.tiers == nil {
		return
	}
	for _, t := range r.tiers.rules {
		t.ruleState, t.tierIndex = r.ruleState, r.ruleState.tiers[t.tierName]
	}
}
