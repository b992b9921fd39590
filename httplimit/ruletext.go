package httplimit

import (
	"strconv"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/internal/fields"
)

// ruleText is the text of a rule in answers that is the same in each of them.
type ruleText struct {
	label string // the name under which clients see the rule
	text  fields.Rule
	slow  bool // less than a token a second

	usualDetail string // of a refusal with the cost of a request that does not state one
}

func newRuleText(label string, r *policy.Rule) ruleText {
	unit := ""
	if r.Cost.Source == policy.ResponseBytes {
		unit = "content-bytes"
	}
	l := ruleText{label: label, text: fields.NewRule(label, uint64(r.Limit.Capacity), r.Limit, unit)}
	// Tokens/Per is less than one a second if Tokens is less than the seconds of Per.
	l.slow = r.Limit.Tokens < ceilSeconds(r.Limit.Per)
	l.usualDetail = l.detail(r, r.Cost.Fallback())
	return l
}

// detail returns the sentence for a client whose request has a cost that r refuses.
func (l *ruleText) detail(r *policy.Rule, cost float64) string {
	text := strconv.FormatFloat(cost, 'g', -1, 64)
	if cost > float64(r.Limit.Capacity) {
		return "Rule " + l.label + " never has more than " + l.text.Quota + " tokens. This request " +
			"costs " + text + ", so it can never fit."
	}
	return "Rule " + l.label + " has too few tokens left for this request, which costs " + text + "."
}
