package httplimit

import (
	"fmt"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

// These are the types of package policy, where their fields are described.
type (
	// Policy says which limits apply to which requests: see policy.Policy.
	Policy = policy.Policy
	// RuleSet is a list of rules for the requests that a selector picks: see policy.RuleSet.
	RuleSet = policy.RuleSet
	// Selector picks requests: see policy.Selector.
	Selector = policy.Selector
	// Exception picks requests that are not limited: see policy.Exception.
	Exception = policy.Exception
	// Evaluation says which of the rules of a set apply to a request: see policy.Evaluation.
	Evaluation = policy.Evaluation
	// Rule is one limit, with a bucket for each value of its keys: see policy.Rule.
	Rule = policy.Rule
	// Cost says how many tokens a request takes: see policy.Cost.
	Cost = policy.Cost
	// Tiers give some requests of a rule another limit: see policy.Tiers.
	Tiers = policy.Tiers
	// Priority lets classes of requests take only a part of a bucket: see policy.Priority.
	Priority = policy.Priority
	// Adaptive makes the rate of a rule follow what the downstream answers: see policy.Adaptive.
	Adaptive = policy.Adaptive
	// OnMissing says what a rule does with a request that lacks a key: see policy.OnMissing.
	OnMissing = policy.OnMissing
	// OnLimit says what a rule does with a request at its limit: see policy.OnLimit.
	OnLimit = policy.OnLimit
)

// The values of Evaluation, OnMissing and OnLimit: see package policy.
const (
	Ladders    = policy.Ladders
	AllMatch   = policy.AllMatch
	FirstMatch = policy.FirstMatch

	Skip   = policy.Skip
	Reject = policy.Reject
	Shared = policy.Shared

	Refuse = policy.Refuse
	Delay  = policy.Delay
)

// Rules returns the policy that consists of these rules, for all requests.
func Rules(rules ...Rule) *Policy { return policy.Rules(rules...) }

// ParsePolicy reads a policy in the format of docs/policy.md. The error joins everything that is
// wrong, but does not tell a key without an extractor: see policy.Parse.
func ParsePolicy(data []byte) (*Policy, error) { return policy.Parse(data) }

// ParsePolicyFor is ParsePolicy for a limiter with these options. The error also joins what New
// would report, such as a key without an extractor.
func ParsePolicyFor(data []byte, opts ...Option) (*Policy, error) {
	l := &Limiter{}
	if err := l.apply(opts); err != nil {
		return nil, fmt.Errorf("httplimit: %w", err)
	}
	return l.parse(data)
}

// parse is ParsePolicyFor with the options of l.
func (l *Limiter) parse(data []byte) (*Policy, error) {
	return policy.ParseWith(data, func(p *Policy) policy.Problems {
		_, errs := l.arrange(p)
		return errs
	})
}
