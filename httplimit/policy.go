package httplimit

import (
	"fmt"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
)

// These are the types of package policy, where each of them is described.
type (
	Policy     = policy.Policy
	RuleSet    = policy.RuleSet
	Selector   = policy.Selector
	Exception  = policy.Exception
	Evaluation = policy.Evaluation
	Rule       = policy.Rule
	Cost       = policy.Cost
	Tiers      = policy.Tiers
	Priority   = policy.Priority
	Adaptive   = policy.Adaptive
	OnMissing  = policy.OnMissing
	OnLimit    = policy.OnLimit
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
