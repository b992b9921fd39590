package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// ruleCollector collects the limiter's own counts of each rule. It reads them only when
// Prometheus asks, so that they cost a request nothing. All label values come from the
// policy and never from requests.
type ruleCollector struct{ limiter *httplimit.Limiter }

var (
	requests = describe("tb_requests_total",
		"Requests that the rule granted or refused. A request that only other rules refused is"+
			" not counted.", "outcome")
	delayed = describe("tb_delayed_requests_total",
		"Granted requests that the rule made wait, or that it would have made wait as a shadow rule.")
	delays = describe("tb_delay_seconds_total",
		"Sum of the delays of the delayed requests.")
	waiting = describe("tb_waiting_requests", "Requests that the rule makes wait now.")
	hungUp  = describe("tb_hung_up_requests_total",
		"Requests that ended while the rule made them wait, mostly because the client disconnected.")
	limiterErrors = describe("tb_errors_total",
		"Requests that the limiter of a rule failed to decide on or to settle. A limiter fails only"+
			" with --redis.")
	rate = describe("tb_limit_tokens_per_second",
		"Rate of the rule's limit now. It changes if the rule is adaptive.")
	keys      = describe("tb_keys", "Keys that have a bucket.")
	evictions = describe("tb_evictions_total",
		"Keys evicted to make room. Their bucket was full, or in debt that is forgiven.", "kind")
	forgiven = describe("tb_forgiven_tokens_total",
		"Debt of evicted buckets in tokens. At most this many were granted above the limit.")
	responses = describe("tb_settled_responses_total",
		"Responses whose cost the rule settled. Without a cost in the response, the estimate stands.",
		"cost")
	settled = describe("tb_settled_tokens_total",
		"Costs that responses reported, in tokens.")
	unpaid = describe("tb_unpaid_tokens_total",
		"Tokens of settled costs that were not charged, because the debt of a bucket is bounded.")
	refusedNew = describe("tb_refused_new_keys_total",
		"Requests refused because the table had no room for their key.")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"set", "rule"}, labels...), nil)
}

// Describe implements prometheus.Collector.
func (ruleCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		requests, delayed, delays, waiting, hungUp, limiterErrors, keys, evictions, forgiven, refusedNew,
		responses, settled, unpaid, rate,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c ruleCollector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.limiter.Stats() {
		count := func(d *prometheus.Desc, n float64, label ...string) {
			labels := append([]string{s.Set, s.Rule}, label...)
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, n, labels...)
		}
		count(requests, float64(s.Granted), "granted")
		count(requests, float64(s.Refused), "refused")
		count(requests, float64(s.ShadowGranted), "shadow_granted")
		count(requests, float64(s.ShadowRefused), "shadow_refused")
		count(delayed, float64(s.Delayed))
		count(delays, s.DelaySeconds)
		count(hungUp, float64(s.HungUp))
		count(limiterErrors, float64(s.Errors))
		count(evictions, float64(s.Table.EvictedFull), "full")
		count(evictions, float64(s.Table.EvictedInDebt), "in_debt")
		count(forgiven, s.Table.Forgiven)
		count(refusedNew, float64(s.Table.RefusedNew))
		gauge := func(d *prometheus.Desc, x float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, x, s.Set, s.Rule)
		}
		gauge(waiting, float64(s.Waiting))
		gauge(keys, float64(s.Table.Keys))
		gauge(rate, float64(s.Limit.Tokens)/s.Limit.Per.Seconds())
		count(responses, float64(s.Settled), "reported")
		count(responses, float64(s.Estimated), "estimated")
		count(settled, s.Table.Settled)
		count(unpaid, s.Table.Unpaid)
	}
}
