package rls

import (
	"math"
	"strconv"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
	"github.com/seed-181794aa/ratelimit/internal/fields"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Fields selects the answers with header fields, which Envoy adds to its response to the client.
type Fields string

// The values of Fields.
const (
	FieldsOff     Fields = "off"
	FieldsRefused Fields = "refused" // with refusals
	FieldsAll     Fields = "all"     // with all answers that a rule has decided
)

// ruleText is the text of a rule in fields.
type ruleText struct {
	fields.Rule
	next int64 // the seconds in which the rate supplies a hit, rounded up
}

func newRuleText(r *config.Rule) ruleText {
	name := r.Name
	if name == "" {
		name = r.Path
	}
	hits := min(hitsOf(r.Limit.Capacity, r.Cost), math.MaxUint32) // rounded down, as entry.remaining
	t := ruleText{Rule: fields.NewRule(printable(name), uint64(hits), r.Limit, "")}
	if r.Limit != (tb.Limit{}) {
		unit := float64(r.Limit.Per / time.Second)
		t.next = int64(math.Ceil(costOf(1, r.Cost) * unit / float64(r.Limit.Tokens)))
	}
	return t
}

// printable returns a name as the label of a structured field (RFC 9651), with ? for what it cannot
// have.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)
}

// wantsFields reports whether an answer has header fields. In shadow mode no answer has any,
// because a client would wait after a request that was not refused.
func (c *call) wantsFields(allowed bool) bool {
	switch f := c.service.Fields; {
	case c.service.Shadow:
		return false
	case allowed:
		return f == FieldsAll
	default:
		return f != FieldsOff
	}
}

// fields returns the header fields of an answer.
func (c *call) fields(allowed bool) []*core.HeaderValue {
	binding := c.binding(allowed)
	if binding == nil {
		return nil
	}
	var list, policies []byte
	retry := int64(0)
	if !allowed {
		retry = binding.retry()
	}
	for i := range c.entries {
		e := &c.entries[i]
		if !e.isLimited() || e.role == shadow {
			continue
		}
		policies = e.rule.text.AppendPolicy(policies)
		if !allowed && !e.refused() {
			continue
		}
		remaining, reset := e.left(retry)
		reset = max(reset, e.rule.text.Sustained(uint64(remaining)))
		list, _, _ = e.rule.text.AppendItem(list, remaining, reset)
	}
	remaining, reset := binding.left(retry)
	all := make([]*core.HeaderValue, 0, 9)
	add := func(name, value string) {
		all = append(all, &core.HeaderValue{Key: name, Value: value})
	}
	if !allowed {
		add("Retry-After", strconv.FormatInt(retry, 10))
	}
	add("RateLimit", string(list))
	if c.service.Policy {
		add("RateLimit-Policy", string(policies))
	}
	three := func(names [3]string, reset int64) {
		add(names[0], binding.rule.text.Quota)
		add(names[1], strconv.FormatInt(remaining, 10))
		add(names[2], strconv.FormatInt(reset, 10))
	}
	three(c.service.Names, reset)
	if c.service.X {
		three(namesOf("X-RateLimit"), fields.ResetAt(c.now, binding.reset(), retry))
	}
	return all
}

func namesOf(prefix string) [3]string {
	return [3]string{prefix + "-Limit", prefix + "-Remaining", prefix + "-Reset"}
}

// binding returns the descriptor that the fields of older drafts are about: of a granted request
// the one with the fewest hits left, and of a refused one the one with the longest wait. Of quotas
// that refuse it, the one with the shortest wait counts.
func (c *call) binding(allowed bool) (binding *entry) {
	var soonest *entry // of the quotas
	for i := range c.entries {
		e := &c.entries[i]
		switch {
		case !e.isLimited() || e.role == shadow:
		case allowed && (binding == nil || e.remaining() < binding.remaining()):
			binding = e
		case e.role == quota:
			if c.exhausted && (soonest == nil || e.retry() < soonest.retry()) {
				soonest = e
			}
		case !allowed && e.refused() && (binding == nil || e.retry() > binding.retry()):
			binding = e
		}
	}
	if soonest != nil && (binding == nil || soonest.retry() > binding.retry()) {
		return soonest
	}
	return binding
}

// left returns the number of hits left, and the seconds until there is one more, or until the hits
// are granted if none is left. retry is the wait of the request, or 0 if it is granted.
func (e *entry) left(retry int64) (remaining, reset int64) {
	if retry > 0 {
		return 0, retry
	}
	remaining = int64(min(e.remaining(), math.MaxUint32))
	if remaining == 0 && e.refused() { // by a quota of several
		return 0, e.retry()
	}
	return remaining, max(1, e.rule.text.next)
}

// neverRetry is the Retry-After of hits that no bucket ever has, in seconds.
const neverRetry = 24 * 60 * 60

// retry returns the wait of the descriptor in seconds, rounded up.
func (e *entry) retry() int64 { return max(1, int64((e.reset()+time.Second-1)/time.Second)) }
