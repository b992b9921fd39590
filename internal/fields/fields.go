// Package fields writes the fields with which servers tell clients of rate limits, for package
// httplimit and for tb-rls: RateLimit and RateLimit-Policy of
// draft-ietf-httpapi-ratelimit-headers-11, which are lists of structured fields (RFC 9651), and the
// numbers of the older fields, each of which is about one rule.
package fields

import (
	"math/big"
	"math/bits"
	"strconv"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Rule is the text of a rule that is the same in every answer.
type Rule struct {
	Quota  string // what a full bucket grants
	Window uint64 // the seconds, rounded up, in which the rate supplies the capacity

	quota        uint64
	item, policy string // the start of the item in RateLimit, and the item in RateLimit-Policy
}

// NewRule returns the text of a rule with a limit, which is not the zero Limit if it has a quota.
// The label is printable ASCII. The unit of the quota is requests if it is "".
func NewRule(label string, quota uint64, limit tb.Limit, unit string) Rule {
	r := Rule{Quota: strconv.FormatUint(quota, 10), Window: window(limit), quota: quota}
	name := strconv.Quote(label)
	r.item = name + ";r="
	r.policy = name + ";q=" + r.Quota + ";w=" + strconv.FormatUint(r.Window, 10)
	if unit != "" {
		r.policy += ";qu=" + strconv.Quote(unit)
	}
	return r
}

// maxInteger is the largest integer of a structured field (RFC 9651, 3.3.1).
const maxInteger = 999_999_999_999_999

// window returns the seconds, rounded up, in which the rate supplies the capacity, but at most
// maxInteger, which is 31 million years. It returns 0 for the zero Limit.
func window(l tb.Limit) uint64 {
	if l == (tb.Limit{}) {
		return 0
	}
	n := new(big.Int).Mul(big.NewInt(int64(l.Capacity)), big.NewInt(int64(l.Per)))
	d := new(big.Int).Mul(big.NewInt(l.Tokens), big.NewInt(int64(time.Second)))
	n.Add(n, d).Sub(n, big.NewInt(1)).Quo(n, d)
	if most := big.NewInt(maxInteger); n.Cmp(most) > 0 {
		n = most
	}
	return n.Uint64()
}

// Sustained returns the seconds, rounded up, in which quota and window supply what is left: r/t is
// at most q/w then. A client that spreads its requests over the effective window keeps to the rate
// (section 8.5 of the draft). It returns 0 if there is no quota.
func (r *Rule) Sustained(left uint64) int64 {
	if r.quota == 0 {
		return 0
	}
	hi, lo := bits.Mul64(min(left, r.quota), r.Window)
	lo, carry := bits.Add64(lo, r.quota-1, 0)
	seconds, _ := bits.Div64(hi+carry, lo, r.quota)
	return int64(seconds)
}

// AppendItem appends the rule's item of RateLimit to a list: what is left, and the seconds until
// there is more. It also returns where the text of what is left begins and ends.
func (r *Rule) AppendItem(list []byte, left, reset int64) (longer []byte, begin, end int) {
	list = append(separated(list), r.item...)
	begin = len(list)
	list = strconv.AppendInt(list, left, 10)
	end = len(list)
	return strconv.AppendInt(append(list, ";t="...), reset, 10), begin, end
}

// AppendPolicy appends the rule's item of RateLimit-Policy to a list.
func (r *Rule) AppendPolicy(list []byte) []byte { return append(separated(list), r.policy...) }

func separated(list []byte) []byte {
	if len(list) > 0 {
		list = append(list, ", "...)
	}
	return list
}

// ResetAt returns the number of X-RateLimit-Reset: when the bucket will be full, in Unix seconds
// rounded up, but not before a client that was refused may come back.
func ResetAt(now time.Time, full time.Duration, retry int64) int64 {
	return max(now.Add(full).Add(time.Second-1).Unix(), now.Unix()+retry)
}
