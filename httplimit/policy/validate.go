package policy

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	partName    = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	hostName    = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?$`)
	sourceKinds = []string{"header", "query", "cookie", "jwt"}
	cookieName  = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

	// unpicked fits the paths that a selector compares with no request: see ResolvePath.
	unpicked = regexp.MustCompile(`[\x00?#]|%[0-9A-Fa-f]{2}|;.*[/\\]|[/\\]\.\.?;`)
)

// Check returns everything that is wrong with the policy, except what depends on the program, such
// as a key without an extractor.
func (p *Policy) Check() Problems {
	var errs Problems
	names := map[string]bool{}
	for i := range p.Sets {
		s := &p.Sets[i]
		path := p.setPath(i)
		id := Path(strings.TrimSuffix(string(path), ".spec")).Field("id")
		if s.Name != "" || len(p.Sets) > 1 || strings.HasPrefix(string(s.path), "policies[") {
			checkName(s.Name, id, names, &errs)
		}
		s.check(path, &errs)
	}
	checkExceptions(p.Except, "except", &errs)
	p.checkLabels(&errs)
	if p.MaxWaiting < 0 || p.MaxWaiting > mostWaiting {
		errs.Add("max_waiting", "must be a whole number, 1 to %d (got %d)", mostWaiting, p.MaxWaiting)
	}
	return errs
}

func (s *RuleSet) check(path Path, errs *Problems) {
	if s.Evaluation < Ladders || s.Evaluation > FirstMatch {
		errs.Add(path.Field("evaluation"), "is %d, want Ladders, AllMatch or FirstMatch", s.Evaluation)
	}
	s.Selector.check(path.Field("selector"), errs)
	names := map[string]bool{}
	for r, path := range s.all(path) {
		for _, level := range r.Levels() {
			checkName(level.Name, path.Field("name"), names, errs)
		}
		r.check(path, errs)
	}
}

func checkName(name string, path Path, seen map[string]bool, errs *Problems) {
	switch {
	case name == "":
		errs.Add(path, "must not be empty")
	case !printable(name):
		errs.Add(path, "must be printable ASCII (got %q)", name)
	case seen[name]:
		errs.Add(path, "must be unique (got %q again)", name)
	}
	seen[name] = true
}

func (s *Selector) check(path Path, errs *Problems) {
	for _, p := range []struct{ field, text string }{
		{"pathExact", s.PathExact}, {"pathPrefix", s.PathPrefix},
	} {
		switch text := p.text; {
		case text != "" && text[0] != '/':
			errs.Add(path.Field(p.field), "must start with / (got %q)", text)
		case unpicked.MatchString(text) || p.field == "pathPrefix" && strings.Contains(text, ";"):
			errs.Add(path.Field(p.field), "must be a decoded path without a query, and without "+
				"parameters before the last segment (got %q)", text)
		}
	}
	for i, h := range s.Hosts {
		if must := CheckHost(h); must != "" { // *.example.com would pick nothing
			errs.Add(path.Field("hosts").Index(i), "%s (got %q)", must, h)
		}
	}
	for i, m := range s.Methods {
		if !IsMethod(m) || m == "*" {
			errs.Add(path.Field("methods").Index(i), "must be a method, such as GET (got %q)", m)
		}
	}
}

func checkExceptions(all []Exception, path Path, errs *Problems) {
	for i := range all {
		e := &all[i]
		if e.isEmpty() && len(e.Networks) == 0 {
			errs.Add(path.Index(i), "must not be empty, because every request would be an exception")
		}
		e.check(path.Index(i), errs)
	}
}

// CheckHost returns what a host of a selector, or of a match on header:host, must be, or "".
func CheckHost(host string) (must string) {
	if hostName.MatchString(host) {
		return ""
	}
	return "must be a host name, an IPv4 address or an IPv6 address in brackets"
}

// IsMethod reports whether text is a token of HTTP (RFC 9110, 5.6.2), as methods are.
func IsMethod(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(c rune) bool {
		isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		return !isLetter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}

func (r *Rule) check(path Path, errs *Problems) {
	seen := map[string]bool{}
	for i, k := range r.Keys {
		checkKey(k, path.Field("limit_keys").Index(i), seen, errs)
	}
	seen = map[string]bool{}
	for _, k := range r.matchKeys() {
		keyPath := path.Field("match").Field(k)
		checkKey(k, keyPath, seen, errs)
		if k != addressKey && IsAddressKey(k) {
			errs.Add(keyPath, "must be without a prefix, because an address is compared")
		}
		if r.Match[k] == "" {
			errs.Add(keyPath, "must not be empty, because an empty value counts as missing")
		}
	}
	checkExceptions(r.Except, path.Field("except"), errs)
	if r.OnMissing < Skip || r.OnMissing > Shared {
		errs.Add(path.Field("on_missing"), "is %d, want Skip, Reject or Shared", r.OnMissing)
	}
	if err := r.Limit.Validate(); err != nil && r.Limit != unreadLimit {
		errs.Add(path.Field("limit"), "is not valid: %v", err)
	}
	r.Cost.check(path.Field("algorithm_config"), errs)
	r.checkParents(path, errs)
	r.checkDelay(path, errs)
	r.checkPriority(path, errs)
	r.checkTiers(path, errs)
	r.checkAdaptive(path, errs)
}

// checkLabels checks that no rule's name is the label of another rule.
func (p *Policy) checkLabels(errs *Problems) {
	type owner struct {
		rule string
		path Path
	}
	owners := map[string]owner{}
	labelOf := p.Labels()
	for i := range p.Sets {
		for r, path := range p.AllOf(i) {
			for _, level := range r.Levels() {
				label := labelOf(p.Sets[i].Name, level.Name)
				other, taken := owners[label]
				if taken && other.rule != level.Name {
					errs.Add(path.Field("name"), "must be different: clients would see %q"+
						" for this rule and for %s", label, other.path)
				}
				owners[label] = owner{level.Name, path}
			}
		}
	}
}

// Problems collects everything that is wrong with a policy. Each problem is the path of a field,
// and what the field must be.
type Problems []error

// Add adds a problem with the field at path. The rest is as in fmt.Sprintf.
func (p *Problems) Add(path Path, format string, args ...any) {
	text := string(path) + " " + fmt.Sprintf(format, args...)
	*p = append(*p, errors.New(strings.TrimPrefix(text, " ")))
}

// Path is where a field is in the document of a policy, such as rules[1].algorithm_config.burst. It
// is "" for the document itself.
type Path string

// Field returns the path of a field of the object at p.
func (p Path) Field(name string) Path {
	switch {
	case !partName.MatchString(name):
		return p + "[" + Path(strconv.Quote(name)) + "]"
	case p == "":
		return Path(name)
	}
	return p + "." + Path(name)
}

// Index returns the path of the element i of the array at p.
func (p Path) Index(i int) Path { return p + "[" + Path(strconv.Itoa(i)) + "]" }
