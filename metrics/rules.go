package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb/redis"
)

// RuleSource is an *httplimit.Limiter or a *grpclimit.Limiter, or has the statistics of one.
type RuleSource interface{ Stats() []httplimit.RuleStats }

// Rules returns a collector of the counts of a limiter's rules, and of what Buckets collects.
func Rules(name string, l RuleSource) prometheus.Collector {
	return ofRules(name, l, ruleFamilies).and(buckets(name, l))
}

// Buckets returns a collector of the tables in memory, or of the limiters in Redis, that have the
// buckets of the rules. Rules collects them, too.
func Buckets(name string, l RuleSource) prometheus.Collector { return buckets(name, l) }

func buckets(name string, l RuleSource) *collector {
	return ofRules(name, l, tableFamilies).and(ofRedis(name, func(emit emit[redis.Stats]) {
		for _, s := range l.Stats() {
			if r, ok := s.Limiter.(RedisSource); ok {
				emit(r.Stats(), s.Label)
			}
		}
	}))
}

func ofRules(name string, l RuleSource, families []family[httplimit.RuleStats]) *collector {
	return newCollector(name, []string{"set", "rule"}, families, func(emit emit[httplimit.RuleStats]) {
		for _, s := range l.Stats() {
			emit(s, s.Set, s.Rule)
		}
	})
}

var ruleFamilies = []family[httplimit.RuleStats]{
	{"tb_requests_total",
		"Requests that the rule granted, refused with 429 or rejected with 400. A request that only" +
			" other rules refused is not counted.",
		prometheus.CounterValue, []string{"outcome"}, func(s *httplimit.RuleStats) []sample {
			return []sample{
				count(s.Granted, "granted"), count(s.Refused, "refused"), count(s.Rejected, "rejected"),
				count(s.ShadowGranted, "shadow_granted"), count(s.ShadowRefused, "shadow_refused"),
			}
		}},
	counter("tb_delayed_requests_total",
		"Granted requests that the rule made wait, or that it would have made wait as a shadow rule.",
		func(s *httplimit.RuleStats) float64 { return float64(s.Delayed) }),
	counter("tb_delay_seconds_total", "Sum of the delays of the delayed requests.",
		func(s *httplimit.RuleStats) float64 { return s.DelaySeconds }),
	gauge("tb_waiting_requests", "Requests that the rule makes wait now.",
		func(s *httplimit.RuleStats) float64 { return float64(s.Waiting) }),
	counter("tb_hung_up_requests_total",
		"Requests that ended while the rule made them wait, mostly because the client disconnected.",
		func(s *httplimit.RuleStats) float64 { return float64(s.HungUp) }),
	counter("tb_errors_total",
		"Requests that the limiter of a rule failed to decide on or to settle. A limiter fails only if"+
			" its buckets are in Redis.",
		func(s *httplimit.RuleStats) float64 { return float64(s.Errors) }),
	{"tb_settled_responses_total",
		"Responses whose cost the rule settled. Without a cost in the response, the estimate stands.",
		prometheus.CounterValue, []string{"cost"}, func(s *httplimit.RuleStats) []sample {
			return []sample{count(s.Settled, "reported"), count(s.Estimated, "estimated")}
		}},
	counter("tb_settled_tokens_total", "Costs that responses reported, in tokens.",
		func(s *httplimit.RuleStats) float64 { return s.Table.Settled }),
	counter("tb_unpaid_tokens_total",
		"Tokens of settled costs that were not charged, because the debt of a bucket is bounded.",
		func(s *httplimit.RuleStats) float64 { return s.Table.Unpaid }),
	gauge("tb_limit_tokens_per_second",
		"Rate of the rule's limit now. It changes if the rule is adaptive.",
		func(s *httplimit.RuleStats) float64 {
			return float64(s.Limit.Tokens) / s.Limit.Per.Seconds()
		}),
}

var tableFamilies = []family[httplimit.RuleStats]{
	gauge("tb_keys", "Keys that have a bucket.",
		func(s *httplimit.RuleStats) float64 { return float64(s.Table.Keys) }),
	{"tb_evictions_total",
		"Keys evicted to make room. Their bucket was full, or in debt that is forgiven.",
		prometheus.CounterValue, []string{"kind"}, func(s *httplimit.RuleStats) []sample {
			return []sample{count(s.Table.EvictedFull, "full"), count(s.Table.EvictedInDebt, "in_debt")}
		}},
	counter("tb_forgiven_tokens_total",
		"Debt of evicted buckets in tokens. At most this many were granted above the limit.",
		func(s *httplimit.RuleStats) float64 { return s.Table.Forgiven }),
	counter("tb_refused_new_keys_total",
		"Requests refused because the table had no room for their key.",
		func(s *httplimit.RuleStats) float64 { return float64(s.Table.RefusedNew) }),
}
