package replay

import (
	"errors"
	"fmt"
	"strings"
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
	// KeysRefused is how many keys were refused at least once. It is exact up to 131,072, and an
	// estimate beyond. Top has the ten keys refused most. In both, a request that several rules refuse
	// counts for the one with the longest wait.
	KeysRefused uint64    `json:"keys_refused"`
	Top         []RuleKey `json:"top"`
}

// RuleKey is a key that a rule has refused.
type RuleKey struct {
	Key string `json:"key"`
	// Refused is a lower bound if Partial is true, because the rule has refused too many keys.
	Refused uint64 `json:"refused"`
	Partial bool   `json:"partial"`
}

func (p *policyMode) fill(res *Result) {
	rep, o := &res.Report, p.outcome
	o.Rules = []RuleOutcome{}
	for _, s := range p.limiter.Stats() {
		rule := RuleOutcome{
			Rule: s.Label, Shadow: s.Shadow, Top: []RuleKey{},
			Granted: s.Granted + s.ShadowGranted,
			Refused: s.Refused + s.Rejected + s.ShadowRefused,
		}
		rep.EvictedInDebt += s.Table.EvictedInDebt
		if r := p.refusals[s.Label]; r != nil {
			rule.KeysRefused = r.keys.keys()
			for _, e := range r.ranking.top(shownKeys) {
				rule.Top = append(rule.Top, RuleKey{e.Key, e.Value.refused, e.Partial})
			}
		}
		o.Rules = append(o.Rules, rule)
	}
	for _, f := range p.facts {
		if f.rule != "" && f.seen == 0 && rep.Requests > 0 {
			o.missing = errors.Join(o.missing,
				fmt.Errorf("no request has %s, which rule %s of --policy needs", f.name, f.rule))
		}
	}
	rep.Policy = &o
}

// write writes the decisions of each rule.
func (o *PolicyOutcome) write(b *strings.Builder) {
	if o.Unclear > 0 {
		fmt.Fprintf(b, "%s %s no path that all servers read alike, and no rule decides it.\n",
			grouped(o.Unclear), plural(o.Unclear, "request has", "requests have"))
	}
	b.WriteString("\n")
	table := columns(b)
	fmt.Fprintln(table, "granted\trefused\tshare\tkeys refused\tmode\t  rule")
	for _, r := range o.Rules {
		mode := "enforce"
		if r.Shadow {
			mode = "shadow"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t  %s\n", grouped(r.Granted), grouped(r.Refused),
			percent(share(r.Refused, r.Granted+r.Refused)), grouped(r.KeysRefused), mode, r.Rule)
	}
	table.Flush()
	b.WriteString("\nRefused most:\n\n")
	fmt.Fprintln(table, "refused\trule\t  key")
	for _, r := range o.Rules {
		for _, k := range r.Top {
			fmt.Fprintf(table, "%s\t%s\t  %s\n", atLeast(k.Partial)+grouped(k.Refused), r.Rule,
				shorten(k.Key, 100))
		}
	}
	table.Flush()
}
