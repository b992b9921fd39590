package httplimit

import (
	"net/netip"
	"slices"
	"strings"
)

// Warnings returns what is valid in the policy and probably not meant. Each warning begins with
// a path, as the errors of ParsePolicy do.
func (p *Policy) Warnings() (texts []string) {
	w := &warner{policy: p}
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
	for _, p := range s.Selector.paths() {
		if strings.ContainsAny(p.text, "%?#") {
			w.add(field(path, p.field), "is compared with decoded paths, without query (got %q)", p.text)
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
