package httplimit

import (
	"math/big"
	"math/bits"
	"strconv"
	"time"
)

// The parameters of RateLimit and RateLimit-Policy.
const (
	paramRemaining = "r"
	paramReset     = "t"
	paramQuota     = "q"
	paramWindow    = "w"
)

// ruleText is the text of a rule's fields that is the same in every answer.
type ruleText struct {
	label  string // the name under which clients see the rule
	quota  string // the capacity
	item   string // the start of the rule's item in RateLimit
	policy string // the rule's item in RateLimit-Policy
	slow   bool   // less than a token a second

	usualDetail string // of a refusal with the cost of a request that does not state one
	window      uint64 // the seconds in which the rate supplies the capacity
}

func newRuleText(label string, r *Rule) ruleText {
	l := ruleText{label: label, quota: strconv.Itoa(r.Limit.Capacity)}
	name := strconv.Quote(label)
	l.item = name + ";" + paramRemaining + "="
	l.window = window(r)
	l.policy = name + ";" + paramQuota + "=" + l.quota + ";" + paramWindow + "=" +
		strconv.FormatUint(l.window, 10)
	if r.Cost.Source == "response:bytes" {
		l.policy += `;qu="content-bytes"`
	}
	// Tokens/Per is less than one a second if Tokens is less than the seconds of Per.
	l.slow = r.Limit.Tokens < ceilSeconds(r.Limit.Per)
	l.usualDetail = l.detail(r, r.Cost.fallback())
	return l
}

// detail returns the sentence for a client whose request has a cost that r refuses.
func (l *ruleText) detail(r *Rule, cost float64) string {
	text := strconv.FormatFloat(cost, 'g', -1, 64)
	if cost > float64(r.Limit.Capacity) {
		return "Rule " + l.label + " never has more than " + l.quota + " tokens. This request costs " +
			text + ", so it can never fit."
	}
	return "Rule " + l.label + " has too few tokens left for this request, which costs " + text + "."
}

// maxInteger is the largest integer of a structured field (RFC 9651, 3.3.1).
const maxInteger = 999_999_999_999_999

// window returns the seconds, rounded up, in which the rate supplies the capacity, but at most
// maxInteger, which is 31 million years.
func window(r *Rule) uint64 {
	n := new(big.Int).Mul(big.NewInt(int64(r.Limit.Capacity)), big.NewInt(int64(r.Limit.Per)))
	d := new(big.Int).Mul(big.NewInt(r.Limit.Tokens), big.NewInt(int64(time.Second)))
	n.Add(n, d).Sub(n, big.NewInt(1)).Quo(n, d)
	if most := big.NewInt(maxInteger); n.Cmp(most) > 0 {
		n = most
	}
	return n.Uint64()
}

// sustained returns the seconds, rounded up, in which the rule's quota and window supply the tokens
// that are left: r/t is at most q/w then. A client that spreads its requests over the effective
// window keeps to the rate (draft-ietf-httpapi-ratelimit-headers-11, 8.5).
func (e *entry) sustained() int64 {
	quota := uint64(e.Limit.Capacity)
	hi, lo := bits.Mul64(min(uint64(e.decision.Remaining), quota), e.window)
	lo, carry := bits.Add64(lo, quota-1, 0)
	seconds, _ := bits.Div64(hi+carry, lo, quota)
	return int64(seconds)
}
