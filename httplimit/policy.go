package httplimit

import (
	"context"
	"fmt"
	"os"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/internal/textfile"
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

func (l *Limiter) parse(data []byte) (*Policy, error) {
	return policy.ParseWith(data, func(p *Policy) policy.Problems {
		_, errs := l.arrange(p)
		return errs
	})
}

// PolicyFile is a policy in a file that a Limiter follows.
type PolicyFile struct {
	// Name is the name of a regular file of at most 16 MiB.
	Name string
	// Text is the text of the policy that is in force, for Limiter.Follow.
	Text string
	// Reloaded is called with each reading of the file that differs from the one before. It may be
	// nil, and is not called twice at the same time.
	Reloaded func(Reload)
	// Signals make the limiter read the file and put it in force, changed or not. It may be nil.
	Signals <-chan os.Signal
}

// Reload is a reading of a PolicyFile.
type Reload struct {
	Cause string // "the file changed" or "SIGHUP"
	// Policy is in force from now on. It is nil if Err is why the policy before it stays in force. Err
	// joins everything that is wrong, each with its path.
	Policy *Policy
	Err    error
}

// FromFile is New with the policy in a file, which the limiter then follows until ctx is done: see
// Limiter.Follow. It returns an error if ctx is done before the file is read.
func FromFile(ctx context.Context, f PolicyFile, opts ...Option) (*Limiter, error) {
	var err error
	if f.Text, err = textfile.ReadUntil(ctx, f.Name); err != nil {
		return nil, fmt.Errorf("httplimit: %w", err)
	}
	p, err := ParsePolicyFor([]byte(f.Text), opts...)
	if err != nil {
		return nil, err
	}
	l, err := New(p, opts...)
	if err == nil {
		go l.Follow(ctx, f)
	}
	return l, err
}

// Follow puts the policy of a file in force whenever the file changes, until ctx is done. It reads
// the file four times a second, also behind symbolic links that are replaced, and applies what two
// readings in a row have. A policy with an error changes nothing: see SetPolicy.
func (l *Limiter) Follow(ctx context.Context, f PolicyFile) {
	textfile.Watch(ctx, f.Signals, &textfile.Watcher{
		Read:    func() (string, error) { return textfile.Read(f.Name) },
		Applied: textfile.Content{Text: f.Text},
		Apply: func(c textfile.Content, why string) {
			p, err := (*Policy)(nil), c.Err()
			if err == nil {
				p, err = l.parse([]byte(c.Text))
			}
			if err == nil {
				err = l.SetPolicy(p)
			}
			if err != nil {
				p = nil
			}
			if f.Reloaded != nil {
				f.Reloaded(Reload{why, p, err})
			}
		},
	})
}
