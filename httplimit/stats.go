package httplimit

import (
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
)

// RuleStats counts the requests that a rule applied to.
type RuleStats struct {
	Set      string // RuleSet.Name, or the id in a bundle
	Rule     string // Rule.Name
	Label    string // as in Decision.Rule
	Shadow   bool
	Limit    tb.Limit        // the present one, if the rate of the rule adapts
	Adaptive policy.Adaptive // the range of the rate, or zero if the rate is fixed
	MaxDelay time.Duration   // the longest delay, or 0 if the rule does not delay
	// Granted and Refused count requests by the rule's own decision. A request that only
	// other rules refused is in neither. ShadowGranted and ShadowRefused count the same
	// while the rule is a shadow rule.
	Granted, Refused, ShadowGranted, ShadowRefused uint64
	// Rejected counts the requests with status 400: see Refusal.
	Rejected uint64
	// Errors counts the requests that the Store could not decide on, or not settle.
	Errors uint64
	// Delayed counts the granted requests that the rule made wait, and DelaySeconds is the sum of
	// these delays. The requests that a shadow rule would have made wait count, too.
	Delayed      uint64
	DelaySeconds float64
	Waiting      int // requests that the rule makes wait now
	// HungUp counts the requests that ended while the rule made them wait, mostly because the client
	// disconnected. They are neither granted nor refused.
	HungUp uint64
	// Settled counts the responses that reported their cost, and Estimated the responses that did
	// not, so that the estimate stands. Both are 0 unless the rule has its cost in the response.
	// Table has the tokens.
	Settled, Estimated uint64
	// Table describes the table of the rule. It is zero if the buckets are not in a Memory.
	Table tb.Stats
	// Limiter is what the Store has made for Rule.Limit. Its own statistics are about all tiers.
	Limiter tb.StoreLimiter
}

// Stats returns the counts of each rule, in the order of the policy. The module
// github.com/seed-181794aa/ratelimit/metrics collects them for Prometheus.
func (l *Limiter) Stats() []RuleStats {
	var all []RuleStats
	for _, r := range l.policy.Load().rules {
		st := RuleStats{
			Set: r.set, Rule: r.Name, Label: r.label, Shadow: r.Shadow, Limit: r.now().Limit,
			Adaptive: r.Adaptive, MaxDelay: r.MaxDelay, Limiter: r.limiters[0],
			Delayed: r.delays.delayed.Load(), DelaySeconds: float64(r.delays.micros.Load()) / 1e6,
			Waiting: int(r.delays.waiting.Load()), HungUp: r.delays.hungUp.Load(),
			Settled: r.settled.Load(), Estimated: r.estimated.Load(),
		}
		for i := range r.counts {
			n := &r.counts[i]
			st.Granted += n.granted.Load()
			st.Refused += n.refused.Load()
			st.ShadowGranted += n.shadowGranted.Load()
			st.ShadowRefused += n.shadowRefused.Load()
			st.Rejected += n.rejected.Load()
			st.Errors += n.errors.Load()
		}
		if r.table != nil {
			st.Table = r.table.Stats()
		}
		all = append(all, st)
	}
	return all
}

// stripes is how many copies of its counts a rule has, so that processors that serve requests
// at the same time do not wait for each other's cache lines.
const stripes = 16

// counts is one copy of a rule's counts. It is padded to 64 bytes, so that no two copies share
// a cache line.
type counts struct {
	granted, refused, shadowGranted, shadowRefused, rejected, errors atomic.Uint64

	_ [2]uint64
}

// count returns c's copy of e's counts. A pooled call mostly stays with one processor, and so
// does the copy.
func (c *call) count(e *entry) *counts { return &e.counts[c.stripe%stripes] }
