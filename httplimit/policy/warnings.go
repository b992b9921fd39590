package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Warnings returns what is valid in the policy, but lets clients past a limit, refuses all of them
// or has no effect. Each warning begins with a path, as the errors of Parse do.
func (p *Policy) Warnings() (texts []string) {
	w := &warner{policy: p}
	if p.UnverifiedJWT {
		w.Add("jwt", "is unverified: without a check of the signature a client may claim anything, "+
			"plan=enterprise included")
	}
	w.exceptions(p.Except, "except", false)
	for i := range p.Sets {
		w.set(&p.Sets[i], p.setPath(i))
	}
	for _, text := range w.Problems {
		texts = append(texts, text.Error())
	}
	return texts
}

type warner struct {
	Problems
	policy *Policy
}

func (w *warner) set(s *RuleSet, path Path) {
	anyEnforced := false
	for r := range s.all(path) {
		anyEnforced = anyEnforced || s.enforces(r)
	}
	if !anyEnforced {
		w.Add(path.Field("rules"), "limit nothing, because all are shadow rules")
	}
	bounded := w.policy.boundsElsewhere(s)
	w.paths(&s.Selector, path.Field("selector"))
	if anyEnforced && !bounded {
		w.selector(&s.Selector, path.Field("selector"))
	}
	bounded = bounded || s.bounds()
	for r, rulePath := range s.all(path) {
		w.costs(r, rulePath.Field("algorithm_config"))
		w.adaptive(s, r, rulePath)
		w.blocks(s, r, rulePath.Field("block"))
		w.priority(s, r, rulePath.Field("priority"))
		if r.MaxDelay > 0 && r.OnLimit != Delay {
			w.Add(rulePath.Field("max_delay"), "has no effect without on_limit delay")
		}
		if s.enforces(r) && !bounded {
			w.invented(r, rulePath)
		}
		w.exceptions(r.Except, rulePath.Field("except"), bounded || !s.enforces(r))
		w.raised(s, r, rulePath.Field("match"))
		w.tiers(s, r, rulePath)
	}
}

// paths warns of a path that looks as if it picked more.
func (w *warner) paths(s *Selector, path Path) {
	prefix := s.PathPrefix
	switch {
	case strings.Contains(s.PathExact+prefix, "*"):
		w.Add(path, "has a * in a path, where it is a character like any other")
	case prefix != "" && !strings.HasSuffix(prefix, "/") && s.PathExact != prefix:
		w.Add(path.Field("pathPrefix"), "picks what is below %q, but neither %q nor %q: end it with a / "+
			"if that is meant, or add a pathExact", prefix+"/", prefix, prefix+"x")
	}
}

// selector warns of requests that a selector does not pick, although many servers take them for
// requests that it does pick, so that no rule limits them.
func (w *warner) selector(s *Selector, path Path) {
	if exact := s.PathExact; exact != "" && exact != "/" {
		slash, hasSlash := strings.CutSuffix(exact, "/")
		if !hasSlash {
			slash += "/"
		}
		var others []string
		for _, other := range []string{slash, exact + ";x"} {
			prefix := strings.TrimSuffix(s.PathPrefix, "/") + "/"
			if s.PathPrefix == "" || !strings.HasPrefix(other, prefix) {
				others = append(others, strconv.Quote(other))
			}
		}
		if len(others) > 0 {
			w.Add(path.Field("pathExact"), "does not pick other spellings that many servers take as "+
				"the same path, such as %s, and no rule for all requests limits them",
				strings.Join(others, " and "))
		}
	}
	if len(s.Hosts) > 0 {
		w.Add(path.Field("hosts"), "are chosen by the client: a request for another host is not "+
			"limited, also if it reaches the same server")
	}
	if s.hasMethod("GET") && !s.hasMethod("HEAD") {
		w.Add(path.Field("methods"), "have GET but not HEAD, which servers answer with the same work")
	}
}

func (s *Selector) hasMethod(method string) bool {
	return slices.ContainsFunc(s.Methods, func(m string) bool { return strings.EqualFold(m, method) })
}

// exceptions warns of exceptions that a client can choose, unless another rule limits it.
func (w *warner) exceptions(all []Exception, path Path, bounded bool) {
	for i := range all {
		e, path := &all[i], path.Index(i)
		w.paths(&e.Selector, path)
		if e.isInvented() && !bounded {
			w.Add(path.Field("hosts"), "are chosen by the client: a request for such a host is not "+
				"limited, also if it reaches another server")
		}
		if !bounded && len(e.Networks) == 0 && e.hasMethod("HEAD") && !e.hasMethod("GET") {
			w.Add(path.Field("methods"), "have HEAD but not GET, which servers answer with the same work")
		}
	}
}

// isInvented reports whether a client can make any request an exception.
func (e *Exception) isInvented() bool { return len(e.Networks) == 0 && len(e.Hosts) > 0 }

func (p *Policy) boundsElsewhere(s *RuleSet) bool {
	for i := range p.Sets {
		if other := &p.Sets[i]; other != s && other.Selector.isEverything() && other.bounds() {
			return true
		}
	}
	return false
}

func (s *Selector) isEmpty() bool {
	return len(s.Hosts) == 0 && len(s.Methods) == 0 && s.PathExact == "" && s.PathPrefix == ""
}

func (s *Selector) isEverything() bool {
	return s.isEmpty() || len(s.Hosts) == 0 && len(s.Methods) == 0 && s.PathPrefix == "/"
}

// bounds reports whether a rule limits all requests of the set, whatever a client sends.
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

func (s *RuleSet) enforces(r *Rule) bool { return !s.Shadow && !r.Shadow }

// alwaysApplies reports whether a rule of the set is enforced on every request.
func (s *RuleSet) alwaysApplies(r Rule) bool {
	hasAllKeys := r.OnMissing != Skip || !slices.ContainsFunc(r.Keys, isNotAddressKey)
	canEscape := slices.ContainsFunc(r.Except, func(e Exception) bool { return e.isInvented() })
	return len(r.Match) == 0 && s.enforces(&r) && hasAllKeys && !canEscape
}

func (w *warner) invented(r *Rule, path Path) {
	const why = "is chosen by the client, which can send another value each time or none: " +
		"without a rule for ip:address or [] beside it, such a client has no limit"
	for i, k := range r.Keys {
		keyPath := path.Field("limit_keys").Index(i)
		if isNarrow(k) {
			w.Add(keyPath, "is chosen by the client, which usually has a whole /64 of IPv6: without a "+
				"rule for ip:address or [] beside it, such a client has no limit (got %q)", k)
			return
		}
		if w.isInvented(k) {
			w.Add(keyPath, why)
			return
		}
	}
	for _, k := range r.matchKeys() {
		if w.isInvented(k) {
			w.Add(path.Field("match").Field(k), why)
			return
		}
	}
}

// raised warns of a match with which a client chooses a limit above the one that its ladder has for
// all requests.
func (w *warner) raised(s *RuleSet, r *Rule, path Path) {
	if s.Evaluation != Ladders || !s.enforces(r) {
		return
	}
	keys := slices.Sorted(slices.Values(CanonicalKeys(r.Keys)))
	for i := range s.Rules {
		b := &s.Rules[i]
		if !s.alwaysApplies(*b) || !isAbove(r.Limit, b.Limit) ||
			!slices.Equal(keys, slices.Sorted(slices.Values(CanonicalKeys(b.Keys)))) {
			continue
		}
		for _, k := range r.matchKeys() {
			if w.isInvented(k) {
				w.Add(path.Field(k), "is chosen by the client, which so has this limit instead of the "+
					"lower one of %s", b.Name)
				return
			}
		}
	}
}

func (w *warner) tiers(s *RuleSet, r *Rule, path Path) {
	if !s.enforces(r) || !w.isInvented(r.Tiers.By) {
		return
	}
	for _, name := range r.Tiers.Names() {
		if isAbove(r.Tiers.Limits[name], r.Limit) {
			w.Add(path.Field("algorithm_config").Field("tiers").Field("by"),
				"is chosen by the client, which so has the limit of %s instead of the lower one of the rule"+
					" (got %q)", name, r.Tiers.By)
			return
		}
	}
}

func isAbove(a, b tb.Limit) bool {
	rate := func(l tb.Limit) float64 { return float64(l.Tokens) / float64(l.Per) }
	return a.Capacity > b.Capacity || rate(a) > rate(b)
}

func (w *warner) isInvented(key string) bool {
	kind, _, ok := strings.Cut(key, ":")
	return ok && (kind == "header" || kind == "query" || kind == "cookie" ||
		kind == "jwt" && w.policy.UnverifiedJWT)
}
