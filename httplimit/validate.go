package httplimit

import (
	"regexp"
	"strings"

	"github.com/seed-181794aa/ratelimit/tb"
)

var (
	partName    = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	hostName    = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?$`)
	sourceKinds = []string{"header", "query", "jwt"}

	// unpicked fits the paths that a selector compares with no request: see ResolvePath.
	unpicked = regexp.MustCompile(`[\x00?#]|%[0-9A-Fa-f]{2}|;.*[/\\]|[/\\]\.\.?;`)
)

const wantHost = "must be a host name, an IPv4 address or an IPv6 address in brackets"

// check returns everything that is wrong with the policy, except keys without an extractor.
func (p *Policy) check() problems {
	var errs problems
	names := map[string]bool{}
	for i := range p.Sets {
		s := &p.Sets[i]
		path := p.setPath(i)
		id := field(strings.TrimSuffix(path, ".spec"), "id")
		if s.Name != "" || len(p.Sets) > 1 || strings.HasPrefix(s.path, "policies[") {
			checkName(s.Name, id, names, &errs)
		}
		s.check(path, &errs)
	}
	p.checkLabels(&errs)
	p.checkWaiting(&errs)
	return errs
}

func (s *RuleSet) check(path string, errs *problems) {
	if s.Evaluation < Ladders || s.Evaluation > FirstMatch {
		errs.add(field(path, "evaluation"), "is %d, want Ladders, AllMatch or FirstMatch", s.Evaluation)
	}
	s.Selector.check(field(path, "selector"), errs)
	names := map[string]bool{}
	for r, path := range s.all(path) {
		for _, level := range r.levels() {
			checkName(level.Name, field(path, "name"), names, errs)
		}
		r.check(path, errs)
	}
}

func checkName(name, path string, seen map[string]bool, errs *problems) {
	switch {
	case name == "":
		errs.add(path, "must not be empty")
	case !printable(name):
		errs.add(path, "must be printable ASCII (got %q)", name)
	case seen[name]:
		errs.add(path, "must be unique (got %q again)", name)
	}
	seen[name] = true
}

func (s *Selector) check(path string, errs *problems) {
	for _, p := range []struct{ field, text string }{
		{"pathExact", s.PathExact}, {"pathPrefix", s.PathPrefix},
	} {
		switch text := p.text; {
		case text != "" && text[0] != '/':
			errs.add(field(path, p.field), "must start with / (got %q)", text)
		case unpicked.MatchString(text) || p.field == "pathPrefix" && strings.Contains(text, ";"):
			errs.add(field(path, p.field), "must be a decoded path without a query, and without "+
				"parameters before the last segment (got %q)", text)
		}
	}
	for i, h := range s.Hosts {
		if !hostName.MatchString(h) { // *.example.com would pick nothing
			errs.add(index(field(path, "hosts"), i), wantHost+" (got %q)", h)
		}
	}
	for i, m := range s.Methods {
		if m == "" || strings.ContainsFunc(m, isNoTokenChar) {
			errs.add(index(field(path, "methods"), i), "must be a method, such as GET (got %q)", m)
		}
	}
}

// isNoTokenChar reports whether a token of HTTP cannot have a character (RFC 9110, 5.6.2).
func isNoTokenChar(c rune) bool {
	isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	return !isLetter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}

func (r *Rule) check(path string, errs *problems) {
	seen := map[string]bool{}
	for i, k := range r.Keys {
		checkKey(k, index(field(path, "limit_keys"), i), seen, errs)
	}
	seen = map[string]bool{}
	for k := range r.sortedMatch() {
		keyPath := field(field(path, "match"), k)
		checkKey(k, keyPath, seen, errs)
		if k != addressKey && isAddressKey(k) {
			errs.add(keyPath, "must be without a prefix, because an address is compared")
		}
		if r.Match[k] == "" {
			errs.add(keyPath, "must not be empty, because an empty value counts as missing")
		}
	}
	if r.OnMissing < Skip || r.OnMissing > Shared {
		errs.add(field(path, "on_missing"), "is %d, want Skip, Reject or Shared", r.OnMissing)
	}
	if err := r.Limit.Validate(); err != nil && r.Limit != unreadLimit {
		errs.add(field(path, "limit"), "is not valid: %v", err)
	}
	r.Cost.check(field(path, "algorithm_config"), errs)
	r.checkParents(path, errs)
	r.checkDelay(path, errs)
	r.checkTiers(path, errs)
	r.checkAdaptive(path, errs)
}

// unreadLimit is the limit of a rule whose own limit could not be read, which is an error
// already.
var unreadLimit = tb.Limit{Capacity: -1}

// checkLabels checks that no rule's name is the label of another rule.
func (p *Policy) checkLabels(errs *problems) {
	type owner struct{ rule, path string }
	owners := map[string]owner{}
	labelOf := p.labels()
	for i := range p.Sets {
		for r, path := range p.Sets[i].all(p.setPath(i)) {
			for _, level := range r.levels() {
				label := labelOf(p.Sets[i].Name, level.Name)
				other, taken := owners[label]
				if taken && other.rule != level.Name {
					errs.add(field(path, "name"), "must be different: clients would see %q"+
						" for this rule and for %s", label, other.path)
				}
				owners[label] = owner{level.Name, path}
			}
		}
	}
}
