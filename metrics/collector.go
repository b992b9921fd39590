// Package metrics collects the statistics of limiters for Prometheus. It is a module of its own, so
// that the limiters do not depend on Prometheus.
//
//	limiter := httplimit.PerAddress(100, 10)
//	prometheus.MustRegister(metrics.Rules("api", limiter))
//
// The collectors read statistics only when Prometheus asks, so that they cost a request nothing,
// and are safe for concurrent use. The name of a limiter is the value of the label limiter. It
// must be unique in a registry. A registry that has one limiter may name it "", which leaves the
// label out. The values of the other labels come from policies, and never from requests.
//
// docs/proxy.md lists the metrics of rules, and docs/redis.md the metrics of limiters in Redis.
package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// family is a metric of statistics S.
type family[S any] struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string // of the samples
	samples    func(s *S) []sample
}

type sample struct {
	value  float64
	labels []string // the values of family.labels
}

// emit takes statistics S, with the values of the labels that identify what they are of.
type emit[S any] func(stats S, labels ...string)

// collector is a prometheus.Collector.
type collector struct {
	descs   []*prometheus.Desc
	collect []func(chan<- prometheus.Metric)
}

// newCollector returns a collector of families of a limiter. The function emits all statistics that
// the limiter has now, which the labels tell apart.
func newCollector[S any](
	name string, labels []string, families []family[S], each func(emit[S]),
) *collector {
	c := &collector{}
	var limiter prometheus.Labels
	if name != "" {
		limiter = prometheus.Labels{"limiter": name}
	}
	for _, f := range families {
		all := slices.Concat(labels, f.labels)
		c.descs = append(c.descs, prometheus.NewDesc(f.name, f.help, all, limiter))
	}
	collect := func(ch chan<- prometheus.Metric) {
		each(func(stats S, labels ...string) {
			for i, f := range families {
				for _, x := range f.samples(&stats) {
					values := slices.Concat(labels, x.labels)
					ch <- prometheus.MustNewConstMetric(c.descs[i], f.kind, x.value, values...)
				}
			}
		})
	}
	c.collect = append(c.collect, collect)
	return c
}

// and returns a collector of what both collect.
func (c *collector) and(other *collector) *collector {
	return &collector{slices.Concat(c.descs, other.descs), slices.Concat(c.collect, other.collect)}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	for _, collect := range c.collect {
		collect(ch)
	}
}

// counter returns a family with one sample.
func counter[S any](name, help string, value func(*S) float64) family[S] {
	return family[S]{name, help, prometheus.CounterValue, nil, func(s *S) []sample {
		return []sample{{value: value(s)}}
	}}
}

func gauge[S any](name, help string, value func(*S) float64) family[S] {
	f := counter(name, help, value)
	f.kind = prometheus.GaugeValue
	return f
}

func count(n uint64, labels ...string) sample { return sample{float64(n), labels} }
