package tokenbucket

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-181794aa/ratelimit/internal/rulemetrics"
	"github.com/seed-181794aa/ratelimit/tb/redis/metrics"
)

// collector is a prometheus.Collector for the limiters of a configuration. It reads their counts
// only when Prometheus asks, so that they cost a request nothing.
type collector struct{ app *App }

// ruleDescs describe rulemetrics.All.
var ruleDescs = func() (all []*prometheus.Desc) {
	for _, m := range rulemetrics.All {
		labels := []string{"limiter", "set", "rule"}
		if m.Label != "" {
			labels = append(labels, m.Label)
		}
		all = append(all, prometheus.NewDesc("caddy_token_bucket_"+m.Name, m.Help, labels, nil))
	}
	return all
}()

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range ruleDescs {
		ch <- d
	}
	metrics.New(c.app.inRedis).Describe(ch)
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	for _, name := range slices.Sorted(maps.Keys(c.app.used)) {
		collectRules(ch, name, c.app.used[name].limiter)
	}
	metrics.New(c.app.inRedis).Collect(ch)
}

func collectRules(ch chan<- prometheus.Metric, name string, l *limiter) {
	for _, s := range l.Stats() {
		for i, m := range rulemetrics.All {
			kind := prometheus.CounterValue
			if m.IsGauge {
				kind = prometheus.GaugeValue
			}
			for _, x := range m.Samples(&s) {
				labels := []string{name, s.Set, s.Rule}
				if m.Label != "" {
					labels = append(labels, x.Label)
				}
				ch <- prometheus.MustNewConstMetric(ruleDescs[i], kind, x.Value, labels...)
			}
		}
	}
}

var _ prometheus.Collector = collector{}
