package replay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// PolicyOutcome has the decisions of a policy.
type PolicyOutcome struct {
	// Granted and Refused count requests.
	Granted uint64 `json:"granted"`
	Refused uint64 `json:"refused"`
	// Unclear counts the requests that tb-proxy answers itself before any rule, nearly always with
	// 400: servers disagree about their path, or it is not a path. They are in neither of the counts
	// above.
	Unclear uint64 `json:"unclear"`
	// Rules has the rules in the order of the policy.
	Rules []RuleOutcome `json:"rules"`

	missing error
}

// RuleOutcome has the decisions of one rule.
type RuleOutcome struct {
	// Rule is the name of the rule, after the name of its set if several sets have the name.
	Rule   string `json:"rule"`
	Shadow bool   `json:"shadow"`
	// Granted and Refused count the requests that the rule applied to, by its own decision. A
	// request that only other rules refused is in neither. A shadow rule counts only requests that
	// all enforced rules granted.
	Granted uint64 `json:"granted"`
	Refused uint64 `json:"refused"`
	// KeysRefused is how many keys were refused at least once, up to --max-keys. Top has the ten keys
	// refused most. In both, a request that several rules refuse counts for the one with the longest
	// wait.
	KeysRefused uint64    `json:"keys_refused"`
	Top         []RuleKey `json:"top"`
}

// RuleKey is a key that a rule has refused.
type RuleKey struct {
	Key     string `json:"key"`
	Refused uint64 `json:"refused"`
}

func (p *policyMode) fill(rep *Report) {
	o := p.outcome
	o.Rules = []RuleOutcome{}
	for _, s := range p.limiter.Stats() {
		rule := RuleOutcome{
			Rule: s.Label, Shadow: s.Shadow, Top: []RuleKey{},
			Granted: s.Granted + s.ShadowGranted,
			Refused: s.Refused + s.Rejected + s.ShadowRefused,
		}
		rep.EvictedInDebt += s.Table.EvictedInDebt
		rule.KeysRefused = uint64(len(p.refusals[s.Label]))
		for key, n := range p.refusals[s.Label] {
			rule.Top = append(rule.Top, RuleKey{key, n})
		}
		slices.SortFunc(rule.Top, func(a, b RuleKey) int {
			return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Key, b.Key))
		})
		rule.Top = rule.Top[:min(len(rule.Top), shownKeys)]
		o.Rules = append(o.Rules, rule)
	}
	for _, part := range p.parts {
		if part.rule != "" && part.seen == 0 && rep.Requests > 0 {
			o.missing = errors.Join(o.missing,
				fmt.Errorf("no request has %s, which rule %s of --policy needs", part.name, part.rule))
		}
	}
	rep.Policy = &o
}

// tables returns the decisions of each rule, and the keys that it refuses most.
func (o *PolicyOutcome) tables() []table {
	if o == nil {
		return nil
	}
	rules := table{ID: "rules", Title: "What each rule decides", Of: "rule",
		Head: []string{"granted", "refused", "share", "keys refused", "mode"}}
	keys := table{ID: "keys", Title: "Refused most", Of: "key", Head: []string{"refused", "rule"}}
	for _, r := range o.Rules {
		mode := "enforce"
		if r.Shadow {
			mode = "shadow"
		}
		rules.add(r.Rule, grouped(r.Granted), grouped(r.Refused),
			percent(share(r.Refused, r.Granted+r.Refused)), grouped(r.KeysRefused), mode)
		for _, k := range r.Top {
			keys.add(shorten(k.Key, 100), grouped(k.Refused), r.Rule)
		}
	}
	return []table{rules, keys}
}
