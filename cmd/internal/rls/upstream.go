package rls

import (
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// upstream collects the metrics that envoyproxy/ratelimit has, by its default mapping for
// Prometheus, so that its dashboards and alerts go on.
type upstream struct {
	collector
	accepted, rejected atomic.Uint64 // configurations
}

// upstreamMethod is a value of the label grpc_method.
const upstreamMethod = "ShouldRateLimit"

var (
	upstreamHits = func() (all [len(decisions)]*prometheus.Desc) {
		for i, decision := range []string{
			"total_hits", "within_limit", "near_limit", "over_limit", "shadow_mode",
		} {
			all[i] = prometheus.NewDesc("ratelimit_service_rate_limit_"+decision,
				"Hits of the rules whose path begins with these keys: as tb_rls_hits_total.",
				[]string{"domain", "key1", "key2"}, nil)
		}
		return all
	}()
	upstreamRequests = prometheus.NewDesc("ratelimit_service_total_requests",
		"Requests.", []string{"grpc_method"}, nil)
	upstreamErrors = prometheus.NewDesc("ratelimit_service_should_rate_limit_error",
		"Requests that were answered with an error.", []string{"err_type"}, nil)
	upstreamAccepted = prometheus.NewDesc("ratelimit_service_config_load_success",
		"Configurations that were accepted.", nil, nil)
	upstreamRejected = prometheus.NewDesc("ratelimit_service_config_load_error",
		"Configurations that were rejected.", nil, nil)
)

// Collect implements prometheus.Collector.
func (u *upstream) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	type keys struct{ domain, first, second string }
	all := map[keys]*[len(decisions)]uint64{}
	for id, sums := range u.hits() {
		path := append(strings.SplitN(id.path, ".", 3), "") // a label that is "" is no label
		k := keys{id.domain, path[0], path[1]}
		if all[k] == nil {
			all[k] = new([len(decisions)]uint64)
		}
		for i, n := range sums {
			all[k][i] += n
		}
	}
	for k, sums := range all {
		for i, d := range upstreamHits {
			count(d, sums[i], k.domain, k.first, k.second)
		}
	}
	n := &u.service.counts
	failed, undecided := n.invalid.Load()+n.unconfigured.Load(), n.undecided.Load()
	count(upstreamRequests, n.allowed.Load()+n.refused.Load()+n.shadowed.Load()+failed+undecided,
		upstreamMethod)
	count(upstreamErrors, undecided, "redis_error")
	count(upstreamErrors, failed, "service_error")
	count(upstreamAccepted, u.accepted.Load())
	count(upstreamRejected, u.rejected.Load())
}
