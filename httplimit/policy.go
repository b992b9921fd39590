package httplimit

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Policy says which limits apply to which requests. ParsePolicy reads one from JSON; New
// checks it. It must not be changed once it is in use.
type Policy struct {
	Sets []RuleSet
	// UnverifiedJWT reads claims from the bearer token of a request without checking its
	// signature, if the program gives none: anyone may then claim anything.
	UnverifiedJWT bool

	warnings []string // of the document that the policy was read from
}

// Rules returns the policy that consists of these rules, for all requests.
func Rules(rules ...Rule) *Policy { return &Policy{Sets: []RuleSet{{Rules: rules}}} }

// RuleSet is a list of rules for the requests that a selector picks. The sets of a policy
// do not know of each other.
type RuleSet struct {
	Name       string // printable ASCII; empty only if it is the policy's only set
	Selector   Selector
	Evaluation Evaluation
	Shadow     bool // all rules are shadow rules
	Rules      []Rule
	Fallback   *Rule // applies if no rule's Match held; nil for none

	path string // where the set was read, for errors
}

// Evaluation says which of the rules of a set apply to a request.
type Evaluation int

const (
	// Ladders is the default. Rules with the same keys form a ladder: they are grouped
	// by Match, in order, and the first group of which a rule applies is the one whose
	// rules apply. Ladders with different keys all apply.
	Ladders Evaluation = iota
	// AllMatch applies every rule whose Match holds.
	AllMatch
	// FirstMatch applies the first rule whose Match holds, and no other.
	FirstMatch
)

// Rule is one limit: a bucket for each value of its keys.
type Rule struct {
	// Name is printable ASCII, and unique in its set.
	Name string
	// Keys name what has a bucket of its own: "ip:address", "header:<name>",
	// "query:<name>", "jwt:<claim>" or a key registered by WithExtractor. Several make
	// a composite; none means one bucket for everybody.
	Keys []string
	// Match has the values that keys must have for the rule to apply, whether or not
	// they are in Keys. They are compared as text.
	Match map[string]string
	// OnMissing says what happens if a request lacks one of Keys.
	OnMissing OnMissing
	// Shadow rules report what they would have done, and never change an answer.
	Shadow bool
	Limit  tb.Limit
	Cost   Cost

	alone bool // the rule is a document of its own
}

// OnMissing says what a rule does with a request that lacks one of its keys.
type OnMissing int

const (
	// Skip is the default: the rule does not apply.
	Skip OnMissing = iota
	// Reject refuses the request, with 400.
	Reject
	// Shared has all requests that lack the key in one bucket, as if that were a value.
	Shared
)

// Cost says how many tokens a request takes.
type Cost struct {
	Source  string  // "" or "fixed", "header:<name>" or "query:<name>"
	Fixed   float64 // if Source is fixed; 0 means 1
	Default float64 // if what Source names is no positive decimal number; 0 means 1
	// Min and Max bound what Source says. 0 means no bound.
	Min, Max float64
}

// Selector picks requests. An empty field picks all of them.
type Selector struct {
	Hosts   []string // whatever their port; upper and lower case are the same
	Methods []string // upper and lower case are the same
	// PathExact is the whole path, PathPrefix its start: "/v1" and "/v1/" both pick
	// "/v1/" and "/v1/x", and not "/v1". If both are given, either will do. Paths are
	// compared with "//", "/./" and "/../" resolved.
	PathExact, PathPrefix string
}

const fallbackName = "fallback_limit"

var (
	partName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	kinds    = []string{"header", "query", "jwt"}
)

// problems collects everything that is wrong with a policy. Each begins with where it is,
// and goes on with what that must be.
type problems []error

func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, errors.New(join(path, fmt.Sprintf(format, args...))))
}

func join(path, text string) string {
	if path == "" {
		return text
	}
	return path + " " + text
}

func field(path, name string) string {
	switch {
	case !partName.MatchString(name):
		return path + "[" + strconv.Quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// check returns all that is wrong with the policy, but for keys that nobody extracts.
func (p *Policy) check() problems {
	var errs problems
	names := map[string]bool{}
	for i := range p.Sets {
		s := &p.Sets[i]
		path := p.place(i)
		id := field(strings.TrimSuffix(path, ".spec"), "id")
		switch {
		case s.Name == "" && len(p.Sets) > 1:
			errs.add(id, "must not be empty")
		case names[s.Name]:
			errs.add(id, "must be unique (got %q again)", s.Name)
		case !printable(s.Name):
			errs.add(id, "must be printable ASCII (got %q)", s.Name)
		}
		names[s.Name] = true
		s.check(path, &errs)
	}
	p.checkLabels(&errs)
	return errs
}

// place returns where the set i is, for errors.
func (p *Policy) place(i int) string {
	if p.Sets[i].path == "" && len(p.Sets) > 1 {
		return index("sets", i)
	}
	return p.Sets[i].path
}

func (s *RuleSet) check(path string, errs *problems) {
	if s.Evaluation < Ladders || s.Evaluation > FirstMatch {
		errs.add(field(path, "evaluation"), "is %d, which is none", s.Evaluation)
	}
	s.Selector.check(field(path, "selector"), errs)
	names := map[string]bool{}
	for r, at := range s.all(path) {
		switch {
		case r.Name == "":
			errs.add(field(at, "name"), "must not be empty")
		case !printable(r.Name):
			errs.add(field(at, "name"), "must be printable ASCII (got %q)", r.Name)
		case names[r.Name]:
			errs.add(field(at, "name"), "must be unique (got %q again)", r.Name)
		}
		names[r.Name] = true
		r.check(at, errs)
	}
}

// all yields the rules of the set, which is at path, and then its fallback, and where
// they are.
func (s *RuleSet) all(path string) iter.Seq2[*Rule, string] {
	return func(yield func(*Rule, string) bool) {
		for i := range s.Rules {
			at := index(field(path, "rules"), i)
			if s.Rules[i].alone {
				at = ""
			}
			if !yield(&s.Rules[i], at) {
				return
			}
		}
		if s.Fallback != nil {
			yield(s.Fallback, field(path, fallbackName))
		}
	}
}

func (r *Rule) check(path string, errs *problems) {
	seen := map[string]bool{}
	for i, k := range r.Keys {
		checkKey(k, index(field(path, "limit_keys"), i), seen, errs)
	}
	seen = map[string]bool{}
	for _, k := range slices.Sorted(maps.Keys(r.Match)) {
		at := field(field(path, "match"), k)
		checkKey(k, at, seen, errs)
		if r.Match[k] == "" {
			errs.add(at, "must not be empty, for an empty value counts as missing")
		}
	}
	if r.OnMissing < Skip || r.OnMissing > Shared {
		errs.add(field(path, "on_missing"), "is %d, which is none", r.OnMissing)
	}
	if err := r.Limit.Validate(); err != nil && r.Limit != unread {
		errs.add(field(path, "limit"), "is not valid: %v", err)
	}
	r.Cost.check(field(path, "algorithm_config"), errs)
}

// unread is the limit of a rule whose own could not be read, which is an error already.
var unread = tb.Limit{Capacity: -1}

const wantCostSource = "must be fixed, header:<name> or query:<name>, " +
	"with a name of A-Z a-z 0-9 _ - (got %q)"

func (c *Cost) check(path string, errs *problems) {
	if c.Source != "" && c.Source != "fixed" {
		kind, name, _ := strings.Cut(c.Source, ":")
		if kind != "header" && kind != "query" || !partName.MatchString(name) {
			errs.add(field(path, "cost_source"), wantCostSource, c.Source)
		}
	}
	costs := []struct {
		name  string
		value float64
	}{
		{"fixed_cost", c.Fixed}, {"default_cost", c.Default},
		{"min_cost", c.Min}, {"max_cost", c.Max},
	}
	for _, f := range costs {
		if !(f.value >= 0 && f.value <= maxCost) { // NaN fails both
			errs.add(field(path, f.name), "must be > 0 and at most %g (got %v)", maxCost, f.value)
		}
	}
	if c.Max > 0 && c.Min > c.Max {
		errs.add(field(path, "min_cost"), "must be <= max_cost (got %v, want <= %v)", c.Min, c.Max)
	}
}

// maxCost is the largest cost that makes sense to write down: 10⁸ times the largest bucket.
const maxCost = 1e17

func checkKey(key, path string, seen map[string]bool, errs *problems) {
	kind, name, _ := strings.Cut(key, ":")
	if key == "" || !printable(key) {
		errs.add(path, "must be printable ASCII and not empty (got %q)", key)
	}
	if slices.Contains(kinds, kind) && !partName.MatchString(name) {
		errs.add(path, "must be %s: and a name of A-Z a-z 0-9 _ - (got %q)", kind, key)
	}
	if seen[canonical(key)] {
		errs.add(path, "must be unique (got %q again)", key)
	}
	seen[canonical(key)] = true
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
