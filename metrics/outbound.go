package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-181794aa/ratelimit/outbound"
)

// OutboundSource is an *outbound.Transport, or has the statistics of one.
type OutboundSource interface{ Stats() outbound.Stats }

// Outbound returns a collector of a client's transport and of its rules. docs/outbound.md lists its
// metrics.
func Outbound(name string, t OutboundSource) prometheus.Collector {
	rules := func(emit emit[outbound.RuleStats]) {
		for _, s := range t.Stats().Rules {
			emit(s, s.Name)
		}
	}
	all := func(emit emit[outbound.Stats]) { emit(t.Stats()) }
	return newCollector(name, []string{"rule"}, outboundRuleFamilies, rules).
		and(newCollector(name, nil, outboundFamilies, all))
}

var outboundFamilies = []family[outbound.Stats]{
	counter("tb_outbound_attempts_total", "Attempts that were sent.",
		func(s *outbound.Stats) float64 { return float64(s.Sent) }),
	counter("tb_outbound_store_failures_total",
		"Failures of the store. Those attempts were sent without its limits.",
		func(s *outbound.Stats) float64 { return float64(s.Failures) }),
}

var outboundRuleFamilies = []family[outbound.RuleStats]{
	counter("tb_outbound_waited_attempts_total", "Attempts that waited longest for the rule.",
		func(s *outbound.RuleStats) float64 { return float64(s.Waited) }),
	counter("tb_outbound_wait_seconds_total", "Sum of the waits of these attempts.",
		func(s *outbound.RuleStats) float64 { return s.WaitTime.Seconds() }),
	counter("tb_outbound_too_late_attempts_total",
		"Attempts that were not sent, because the wait would have been too long.",
		func(s *outbound.RuleStats) float64 { return float64(s.TooLate) }),
	counter("tb_outbound_pauses_total", "Pauses that the server has caused.",
		func(s *outbound.RuleStats) float64 { return float64(s.Held) }),
	counter("tb_outbound_refused_attempts_total",
		"Attempts that the server refused although they had waited for their turn: it should be 0.",
		func(s *outbound.RuleStats) float64 { return float64(s.Refused) }),
}
