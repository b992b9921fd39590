package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/internal/rulemetrics"
)

// ruleCollector collects the limiter's own counts of each rule. It reads them only when
// Prometheus asks, so that they cost a request nothing. All label values come from the
// policy and never from requests.
type ruleCollector struct{ limiter *httplimit.Limiter }

// ruleDescs describe rulemetrics.All.
var ruleDescs = func() (all []*prometheus.Desc) {
	for _, m := range rulemetrics.All {
		labels := []string{"set", "rule"}
		if m.Label != "" {
			labels = append(labels, m.Label)
		}
		all = append(all, prometheus.NewDesc("tb_"+m.Name, m.Help, labels, nil))
	}
	return all
}()

// Describe implements prometheus.Collector.
func (ruleCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range ruleDescs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c ruleCollector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.limiter.Stats() {
		for i, m := range rulemetrics.All {
			kind := prometheus.CounterValue
			if m.IsGauge {
				kind = prometheus.GaugeValue
			}
			for _, x := range m.Samples(&s) {
				labels := []string{s.Set, s.Rule}
				if m.Label != "" {
					labels = append(labels, x.Label)
				}
				ch <- prometheus.MustNewConstMetric(ruleDescs[i], kind, x.Value, labels...)
			}
		}
	}
}
