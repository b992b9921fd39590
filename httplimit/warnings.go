package httplimit

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
)

// Warnings returns what is valid in the policy and probably not meant. Each warning begins with
// a path, as the errors of ParsePolicy do.
func (p *Policy) Warnings() (texts []string) {
	w := &warner{problems: problems{inGo: !p.isDocument}, policy: p}
	w.addAll(p.warnings)
	if p.UnverifiedJWT {
		w.add("jwt", "is unverified: without a check of the signature a client may claim anything, "+
			"plan=enterprise included")
	}
	w.waiting()
	for i := range p.Sets {
		w.set(&p.Sets[i], p.setPath(i))
	}
	for _, text := range w.list {
		texts = append(texts, text.Error())
	}
	if more := w.count - len(w.list); more > 0 {
		texts = append(texts, MoreErrors(more).Error())
	}
	return texts
}

// warner collects warnings.
type warner struct {
	problems
	policy *Policy
}

func (w *warner) set(s *RuleSet, path string) {
	rules, anyEnforced := 0, false
	for r := range s.all(path) {
		rules++
		anyEnforced = anyEnforced || s.enforces(r)
	}
	if rules > 0 && !anyEnforced {
		w.add(field(path, "rules"), "limit nothing, because all are shadow rules")
	}
	if anyEnforced {
		w.selector(s, field(path, "selector"))
	}
	unreachable, bounded := s.unreachable(), w.policy.bounds(s)
	for r, rulePath := range s.all(path) {
		w.names(r, rulePath)
		w.costs(r, field(rulePath, "algorithm_config"))
		w.delays(r, rulePath)
		w.adaptive(s, r, rulePath)
		w.matches(r, field(rulePath, "match"))
		if s.enforces(r) && !bounded {
			w.invented(r, rulePath)
		}
		w.raised(s, r, field(rulePath, "match"))
		w.tiers(s, r, rulePath)
		if by := unreachable[r]; by != "" {
			w.add(rulePath, "never applies, because %s applies instead", by)
		}
	}
	if i := slices.IndexFunc(s.Rules, s.alwaysApplies); s.Fallback != nil && i >= 0 {
		w.add(field(path, fallbackName), "never applies, because there is a rule without match "+
			"that every request has the keys of")
	}
}

// selector warns of requests that a selector does not pick, although many servers take them for
// requests that it does pick.
func (w *warner) selector(s *RuleSet, path string) {
	exact := s.Selector.PathExact
	for _, f := range []struct{ name, path string }{
		{"pathExact", exact}, {"pathPrefix", s.Selector.PathPrefix},
	} {
		if strings.ContainsAny(f.path, "%?#") {
			w.add(field(path, f.name), "is compared with decoded paths, without query (got %q)", f.path)
		}
	}
	if w.policy.boundsElsewhere(s) {
		return
	}
	if exact != "" && exact != "/" {
		w.add(field(path, "pathExact"), "does not pick other spellings that many servers take as the "+
			"same path, such as %q and %q, and no rule for all requests limits them",
			strings.TrimRight(exact, "/")+"/", exact+";x")
	}
	if len(s.Selector.Hosts) > 0 {
		w.add(field(path, "hosts"), "are chosen by the client: a request for another host is not "+
			"limited, also if it reaches the same server")
	}
	has := func(method string) bool {
		return slices.ContainsFunc(s.Selector.Methods, func(m string) bool {
			return strings.EqualFold(m, method)
		})
	}
	if has("GET") && !has("HEAD") {
		w.add(field(path, "methods"), "have GET but not HEAD, which servers answer with the same work")
	}
}

func (w *warner) costs(r *Rule, path string) {
	c, burst := r.Cost, float64(r.Limit.Capacity)
	switch {
	case c.isFixed():
		if c.fallback() > burst {
			w.add(field(path, "fixed_cost"), "is above burst, so the rule refuses every request")
		}
		return
	case newResponseCost(&c).inResponse:
		w.estimates(r, path)
		return
	case c.Min > burst:
		w.add(field(path, "min_cost"), "is above burst, so the rule refuses every request with a cost")
	case c.fallback() < c.Min:
		w.add(field(path, "default_cost"), "is below min_cost (%v < %v), so a request without a valid "+
			"cost is cheaper than any other", c.fallback(), c.Min)
	}
	if c.fallback() > burst {
		w.add(field(path, "default_cost"), "is above burst, so the rule refuses every request without "+
			"a valid cost")
	}
	if c.Min == 0 || c.Max == 0 {
		w.add(field(path, "cost_source"), "lets clients choose how many tokens a "+
			"request takes: set both min_cost and max_cost")
	}
}

// matches warns of a match that never holds.
func (w *warner) matches(r *Rule, path string) {
	for k, v := range r.sortedMatch() {
		if _, err := netip.ParseAddr(v); k == addressKey && err != nil {
			w.add(field(path, k), "never holds, because it is not an address (got %q)", v)
		}
		if canonical(k) == "header:host" && !hostName.MatchString(v) {
			w.add(field(path, k), "never holds, because it is not a host (got %q)", v)
		} else if strings.HasPrefix(k, "header:") && strings.Trim(v, " \t") != v {
			w.add(field(path, k), "never holds, because values have no blanks at their ends (got %q)", v)
		}
	}
}

// bounds reports whether a rule limits all requests of a set, whatever a client sends.
func (p *Policy) bounds(s *RuleSet) bool {
	return s.bounds() || p.boundsElsewhere(s)
}

// boundsElsewhere reports whether a rule of another set limits all requests.
func (p *Policy) boundsElsewhere(s *RuleSet) bool {
	for i := range p.Sets {
		if other := &p.Sets[i]; other != s && other.Selector.isEverything() && other.bounds() {
			return true
		}
	}
	return false
}

func (s *Selector) isEverything() bool {
	return len(s.Hosts) == 0 && len(s.Methods) == 0 &&
		(s.PathExact == "" && s.PathPrefix == "" || s.PathPrefix == "/")
}

func (s *RuleSet) bounds() bool {
	for i := range s.Rules {
		r := &s.Rules[i]
		if s.alwaysApplies(*r) && !slices.ContainsFunc(r.Keys, isNotAddressKey) &&
			!slices.ContainsFunc(r.Keys, isNarrow) {
			return true
		}
		if s.Evaluation == FirstMatch {
			return false // another rule can apply instead
		}
	}
	return false
}

// enforces reports whether a rule of the set is not a shadow rule.
func (s *RuleSet) enforces(r *Rule) bool { return !s.Shadow && !r.Shadow }

// alwaysApplies reports whether a rule of the set is enforced on every request.
func (s *RuleSet) alwaysApplies(r Rule) bool {
	return len(r.Match) == 0 && s.enforces(&r) && r.hasAllKeys()
}

// hasAllKeys reports whether the rule applies to a request that lacks keys.
func (r *Rule) hasAllKeys() bool {
	return r.OnMissing != Skip || !slices.ContainsFunc(r.Keys, isNotAddressKey)
}

func isNotAddressKey(k string) bool { return !isAddressKey(k) }

// unreachable returns the rules that never apply, because another rule of their ladder applies
// to all their requests: the other rule's name.
func (s *RuleSet) unreachable() map[*Rule]string {
	never := map[*Rule]string{}
	if s.Evaluation == AllMatch {
		return never
	}
	find := func(shadow bool) {
		var rules []*rule
		origin := map[*rule]*Rule{}
		for i := range s.Rules {
			if r := &s.Rules[i]; shadow || s.enforces(r) {
				c := &rule{Rule: *r, base: r.Name}
				rules, origin[c] = append(rules, c), r
			}
		}
		for _, l := range newLadders(s.Evaluation, rules) {
			for r, by := range l.unreachable() {
				if s.enforces(origin[r]) != shadow {
					never[origin[r]] = by
				}
			}
		}
	}
	find(false)
	find(true)
	return never
}

// maxCompared is how many rules of a ladder are compared with each other, because the work grows
// with their square.
const maxCompared = 1000

func (l ladder) unreachable() map[*rule]string {
	never := map[*rule]string{}
	if len(slices.Concat(l...)) > maxCompared {
		return never
	}
	for i, g := range l {
		for _, r := range g {
			for _, before := range l[:i] {
				j := slices.IndexFunc(before, func(b *rule) bool { return b.covers(&r.Rule) })
				if j >= 0 && never[r] == "" {
					never[r] = before[j].Name
				}
			}
		}
	}
	return never
}

// covers reports whether r applies to every request that other applies to.
func (r *Rule) covers(other *Rule) bool {
	values := map[string]string{}
	for k, v := range other.Match {
		values[canonical(k)] = v
	}
	for k, v := range r.Match {
		if values[canonical(k)] != v {
			return false
		}
	}
	keys := canonicals(other.Keys)
	lacks := func(k string) bool { return isNotAddressKey(k) && !slices.Contains(keys, canonical(k)) }
	return r.hasAllKeys() || other.OnMissing == Skip && !slices.ContainsFunc(r.Keys, lacks)
}

// addressMatcher compares addresses in any spelling.
func addressMatcher(want string) func(string) bool {
	if a, ok := clientaddr.Parse(want); ok {
		want = clientaddr.Embedded(a).String()
	}
	return equal(want)
}
