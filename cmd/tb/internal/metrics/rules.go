package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-181794aa/ratelimit/httplimit"
)

// rules is a Collector of what the rules of a policy count by themselves. It reads the
// counts when it is asked, so that requests pay nothing for it. The values of its labels are
// those in the policy, and never come from requests.
type rules struct{ limiter *httplimit.Limiter }

var (
	requests = describe("tb_requests_total",
		"Requests by the answer of each rule that applied to them.", "outcome")
	errs = describe("tb_errors_total",
		"Requests that the limiter of a rule could not decide on.")
	keys      = describe("tb_keys", "Keys that have a bucket now.")
	evictions = describe("tb_evictions_total",
		"Keys evicted to make room: their bucket was full, or in debt and is forgiven.", "kind")
	forgiven = describe("tb_forgiven_tokens_total",
		"Tokens that evicted buckets lacked: at most so many were granted above the limit.")
	refusedNew = describe("tb_refused_new_keys_total",
		"Requests refused because the table had no room for their key.")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"set", "rule"}, labels...), nil)
}

// Describe implements prometheus.Collector.
func (rules) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requests, errs, keys, evictions, forgiven, refusedNew} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c rules) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.limiter.Stats() {
		count := func(d *prometheus.Desc, n float64, label ...string) {
			labels := append([]string{s.Set, s.Rule}, label...)
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, n, labels...)
		}
		count(requests, float64(s.Granted), "granted")
		count(requests, float64(s.Refused), "refused")
		count(requests, float64(s.ShadowGranted), "shadow_granted")
		count(requests, float64(s.ShadowRefused), "shadow_refused")
		count(errs, float64(s.Errors))
		count(evictions, float64(s.Table.EvictedFull), "full")
		count(evictions, float64(s.Table.EvictedInDebt), "in_debt")
		count(forgiven, s.Table.Forgiven)
		count(refusedNew, float64(s.Table.RefusedNew))
		ch <- prometheus.MustNewConstMetric(keys, prometheus.GaugeValue, float64(s.Table.Keys),
			s.Set, s.Rule)
	}
}
