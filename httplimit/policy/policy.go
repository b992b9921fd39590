package policy

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Policy says which limits apply to which requests. Parse reads a policy from JSON, Rules makes one
// of rules, and Check checks it. A policy must not be changed once it is in use.
type Policy struct {
	Sets []RuleSet
	// Except has the requests that no rule applies to.
	Except []Exception
	// UnverifiedJWT reads claims from the bearer token of a request without checking its
	// signature, if the application supplies no claims. A client can then claim anything.
	UnverifiedJWT bool
	// MaxWaiting is how many requests may wait at the same time for rules that delay, up to 1<<20.
	// 0 means 1,000. At this bound, rules refuse instead of delaying.
	MaxWaiting int
}

// Rules returns the policy that consists of these rules, for all requests.
func Rules(rules ...Rule) *Policy { return &Policy{Sets: []RuleSet{{Rules: rules}}} }

// RuleSet is a list of rules for the requests that a selector picks. Each set of a policy is
// evaluated by itself.
type RuleSet struct {
	Name       string // printable ASCII; may be empty if it is the policy's only set
	Selector   Selector
	Evaluation Evaluation
	Shadow     bool // all rules are shadow rules
	Rules      []Rule
	Fallback   *Rule // applies if no enforced rule does; nil for none

	path Path // where the set was read, for errors
}

// Evaluation says which of the rules of a set apply to a request.
type Evaluation int

const (
	// Ladders is the default. Rules with the same keys form a ladder. Within a ladder, rules
	// with the same Match form a group. Of each ladder only the first group that has a rule
	// that applies is used, in the order of the policy.
	Ladders Evaluation = iota
	// AllMatch applies every rule whose Match holds.
	AllMatch
	// FirstMatch applies the first rule whose Match holds, and no other rule.
	FirstMatch
)

// Rule is one limit: a bucket for each value of its keys.
type Rule struct {
	// Name is printable ASCII, and unique in its set.
	Name string
	// Keys are the parts of a bucket's key: "ip:address", "header:<name>", "query:<name>",
	// "cookie:<name>", "jwt:<claim>" or a key registered by httplimit.WithExtractor. With several
	// keys, each combination of values has a bucket. Without keys, all requests share one bucket.
	//
	// "ip:address/64,/56,/48" gives each IPv6 /64 a bucket, and also its parent networks: the /56
	// and the /48. Each has four times the limit of the network before it, and is a rule of its own,
	// whose name ends with the prefix, as in "name/56". "ip:address/56" has no parents.
	Keys []string
	// Match has the values that keys must have for the rule to apply. These keys need not be
	// in Keys. Values are compared as text. The value of ip:address is an address or a network.
	Match map[string]string
	// Except has the requests that the rule does not apply to, as if Match did not hold.
	Except []Exception
	// OnMissing says what happens if a request lacks one of Keys.
	OnMissing OnMissing
	// Shadow makes the rule report what it would have decided. It never changes a response.
	Shadow bool
	// OnLimit says what happens to a request if the bucket has too few tokens.
	OnLimit OnLimit
	// MaxDelay is the longest delay of a request if OnLimit is Delay. It must be above 0 then.
	MaxDelay time.Duration
	// Block makes a refusal hold the bucket for that time, 1 ms to 8,760 hours, or 0: nothing is
	// granted before, and then the bucket is empty. If the cost is in the response, estimates do not
	// count: a refusal blocks only if the costs of the responses that have ended would refuse, too.
	Block time.Duration
	// Priority lets classes of requests take only a part of a bucket.
	Priority Priority
	Limit    tb.Limit
	// Tiers give some requests another limit.
	Tiers Tiers
	// Adaptive makes the rate of Limit change.
	Adaptive Adaptive
	Cost     Cost

	alone bool // the rule is a document of its own
}

func (r *Rule) matchKeys() []string { return slices.Sorted(maps.Keys(r.Match)) }

// OnMissing says what a rule does with a request that lacks one of its keys.
type OnMissing int

const (
	// Skip is the default: the rule does not apply.
	Skip OnMissing = iota
	// Reject refuses the request, with 400.
	Reject
	// Shared puts all requests that lack the key in one bucket, as if they had the same value.
	Shared
)

// Selector picks requests. An empty field picks all requests.
type Selector struct {
	Hosts   []string // with any port; upper and lower case are the same
	Methods []string // upper and lower case are the same
	// PathExact is the whole path, PathPrefix its start: "/v1" and "/v1/" both pick "/v1/"
	// and "/v1/x", but not "/v1". If both are given, one of them must fit. Paths are compared
	// as httplimit.ResolvePath reads them, with backslashes as slashes.
	PathExact, PathPrefix string
}

// Exception picks requests that are not limited: those that its Selector picks, from a client in
// Networks. It must have a field. A path or method that servers may read differently is none.
type Exception struct {
	Selector
	// Networks are addresses and networks, as Match has for ip:address. None means all clients.
	Networks []string
}

const fallbackName = "fallback_limit"

func (p *Policy) setPath(i int) Path {
	if p.Sets[i].path == "" && len(p.Sets) > 1 {
		return Path("policies").Index(i).Field("spec")
	}
	return p.Sets[i].path
}

// All yields the rules of the set, and then its fallback.
func (s *RuleSet) All() iter.Seq[*Rule] {
	return func(yield func(*Rule) bool) {
		s.all("")(func(r *Rule, _ Path) bool { return yield(r) })
	}
}

// AllOf yields the rules of the set i, and then its fallback, each with its path.
func (p *Policy) AllOf(i int) iter.Seq2[*Rule, Path] { return p.Sets[i].all(p.setPath(i)) }

func (s *RuleSet) all(path Path) iter.Seq2[*Rule, Path] {
	return func(yield func(*Rule, Path) bool) {
		for i := range s.Rules {
			rulePath := path.Field("rules").Index(i)
			if s.Rules[i].alone {
				rulePath = ""
			}
			if !yield(&s.Rules[i], rulePath) {
				return
			}
		}
		if s.Fallback != nil {
			yield(s.Fallback, path.Field(fallbackName))
		}
	}
}

// Labels returns the function that makes the label of a rule or a parent, under which clients see
// it: its name, after the name of its set if several sets have a rule of that name.
func (p *Policy) Labels() func(set, name string) string {
	count := map[string]int{}
	for i := range p.Sets {
		for r := range p.Sets[i].All() {
			for _, level := range r.Levels() {
				count[level.Name]++
			}
		}
	}
	return func(set, name string) string {
		if count[name] > 1 {
			return set + "/" + name
		}
		return name
	}
}
