// Package rulemetrics names the statistics of rules for Prometheus. It does not depend on
// Prometheus: each program makes its own metrics of the list. Label values come from policies and
// never from requests.
package rulemetrics

import "github.com/seed-181794aa/ratelimit/httplimit"

// Metric is a statistic of each rule. All metrics have the labels set and rule.
type Metric struct {
	Name    string // without the prefix of the program
	Help    string
	IsGauge bool   // otherwise it is a counter
	Label   string // of the samples, or "" if there is one sample without
	Samples func(s *httplimit.RuleStats) []Sample
}

// Sample is a value of a metric.
type Sample struct {
	Label string // the value of Metric.Label
	Value float64
}

// All is all metrics of rules.
var All = []Metric{
	counters("requests_total", "outcome",
		"Requests that the rule granted or refused. A request that only other rules refused is not"+
			" counted.", func(s *httplimit.RuleStats) []Sample {
			return []Sample{
				{"granted", float64(s.Granted)}, {"refused", float64(s.Refused)},
				{"shadow_granted", float64(s.ShadowGranted)}, {"shadow_refused", float64(s.ShadowRefused)},
			}
		}),
	counter("delayed_requests_total",
		"Granted requests that the rule made wait, or that it would have made wait as a shadow rule.",
		func(s *httplimit.RuleStats) float64 { return float64(s.Delayed) }),
	counter("delay_seconds_total", "Sum of the delays of the delayed requests.",
		func(s *httplimit.RuleStats) float64 { return s.DelaySeconds }),
	gauge("waiting_requests", "Requests that the rule makes wait now.",
		func(s *httplimit.RuleStats) float64 { return float64(s.Waiting) }),
	counter("hung_up_requests_total",
		"Requests that ended while the rule made them wait, mostly because the client disconnected.",
		func(s *httplimit.RuleStats) float64 { return float64(s.HungUp) }),
	counter("errors_total",
		"Requests that the limiter of a rule failed to decide on or to settle. A limiter fails only if"+
			" its buckets are in Redis.",
		func(s *httplimit.RuleStats) float64 { return float64(s.Errors) }),
	gauge("keys", "Keys that have a bucket.",
		func(s *httplimit.RuleStats) float64 { return float64(s.Table.Keys) }),
	counters("evictions_total", "kind",
		"Keys evicted to make room. Their bucket was full, or in debt that is forgiven.",
		func(s *httplimit.RuleStats) []Sample {
			return []Sample{
				{"full", float64(s.Table.EvictedFull)}, {"in_debt", float64(s.Table.EvictedInDebt)},
			}
		}),
	counter("forgiven_tokens_total",
		"Debt of evicted buckets in tokens. At most this many were granted above the limit.",
		func(s *httplimit.RuleStats) float64 { return s.Table.Forgiven }),
	counter("refused_new_keys_total",
		"Requests refused because the table had no room for their key.",
		func(s *httplimit.RuleStats) float64 { return float64(s.Table.RefusedNew) }),
	counters("settled_responses_total", "cost",
		"Responses whose cost the rule settled. Without a cost in the response, the estimate stands.",
		func(s *httplimit.RuleStats) []Sample {
			return []Sample{{"reported", float64(s.Settled)}, {"estimated", float64(s.Estimated)}}
		}),
	counter("settled_tokens_total", "Costs that responses reported, in tokens.",
		func(s *httplimit.RuleStats) float64 { return s.Table.Settled }),
	counter("unpaid_tokens_total",
		"Tokens of settled costs that were not charged, because the debt of a bucket is bounded.",
		func(s *httplimit.RuleStats) float64 { return s.Table.Unpaid }),
	gauge("limit_tokens_per_second",
		"Rate of the rule's limit now. It changes if the rule is adaptive.",
		func(s *httplimit.RuleStats) float64 { return float64(s.Limit.Tokens) / s.Limit.Per.Seconds() }),
}

func counters(
	name, label, help string, samples func(*httplimit.RuleStats) []Sample,
) Metric {
	return Metric{Name: name, Help: help, Label: label, Samples: samples}
}

func counter(name, help string, value func(*httplimit.RuleStats) float64) Metric {
	return counters(name, "", help, func(s *httplimit.RuleStats) []Sample {
		return []Sample{{Value: value(s)}}
	})
}

func gauge(name, help string, value func(*httplimit.RuleStats) float64) Metric {
	m := counter(name, help, value)
	m.IsGauge = true
	return m
}
