package rls

import (
	"context"
	"sync/atomic"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc"

	tbmetrics "github.com/seed-181794aa/ratelimit/cmd/internal/metrics"
	ratelimitmetrics "github.com/seed-181794aa/ratelimit/metrics"
)

// metrics serves the counts of a service to Prometheus.
type metrics struct {
	*tbmetrics.Process
	durations []prometheus.Observer // all have each duration
	upstream  *upstream
}

// durationBuckets are the upper bounds of the buckets of the duration, in seconds.
var durationBuckets = []float64{
	10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 1,
}

// newMetrics returns metrics that include the lines that the log has lost.
func newMetrics(s *Service, lostLines func() uint64) *metrics {
	loaded := s.state.Load().rules != nil
	p := tbmetrics.NewProcess("tb_rls_config", "configuration", loaded, lostLines)
	m := &metrics{Process: p, upstream: &upstream{collector: collector{s}}}
	m.addDuration("tb_rls_request_seconds", nil)
	if loaded {
		m.upstream.accepted.Store(1)
	}
	m.MustRegister(collector{s}, ratelimitmetrics.Buckets("", s))
	return m
}

// Reload counts a reload of the configuration.
func (m *metrics) Reload(accepted bool) {
	m.Process.Reload(accepted)
	if accepted {
		m.upstream.accepted.Add(1)
	} else {
		m.upstream.rejected.Add(1)
	}
}

// addDuration adds a metric that has the durations of requests.
func (m *metrics) addDuration(name string, labels prometheus.Labels) {
	m.durations = append(m.durations, promauto.With(m).NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: "Time from a decoded request to its answer.",
		ConstLabels: labels, Buckets: durationBuckets,
	}))
}

// addUpstream adds the metrics of envoyproxy/ratelimit.
func (m *metrics) addUpstream() {
	m.MustRegister(m.upstream)
	m.addDuration("ratelimit_service_response_time_seconds",
		prometheus.Labels{"grpc_method": upstreamMethod})
}

// time is an interceptor that measures the duration of requests. Health checks are not requests.
func (m *metrics) time(
	ctx context.Context, r any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	if _, isRequest := r.(*ratelimit.RateLimitRequest); !isRequest {
		return handler(ctx, r)
	}
	began := time.Now()
	answer, err := handler(ctx, r)
	for _, d := range m.durations {
		d.Observe(time.Since(began).Seconds())
	}
	return answer, err
}

// collector collects the counts of a service when Prometheus asks, so that they cost a request
// little. Label values come from the configuration, or are bounded.
type collector struct{ service *Service }

// Describe implements prometheus.Collector. It sends nothing: Collect decides.
func (collector) Describe(chan<- *prometheus.Desc) {}

// counters sends counters to Prometheus.
type counters chan<- prometheus.Metric

// add sends a counter. The labels are names and values in turn.
func (c counters) add(name, help string, n uint64, labels ...string) {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	c <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil),
		prometheus.CounterValue, float64(n), values...)
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	all, n := counters(ch), &c.service.counts
	for outcome, n := range map[string]*atomic.Uint64{
		"ok": &n.allowed, "over_limit": &n.refused, "shadow": &n.shadowed,
	} {
		all.add("tb_rls_requests_total", "Requests, by outcome. shadow counts the requests over a limit"+
			" that --shadow-mode answered with OK.", n.Load(), "outcome", outcome)
	}
	for reason, n := range map[string]*atomic.Uint64{
		"invalid": &n.invalid, "no_configuration": &n.unconfigured, "redis": &n.undecided,
	} {
		all.add("tb_rls_errors_total", "Requests that were answered with an error, by reason.",
			n.Load(), "reason", reason)
	}
	all.add("tb_rls_unknown_domains_total",
		"Requests for a domain that the configuration does not have.", n.unknownDomains.Load())
	all.add("tb_rls_unmatched_descriptors_total", "Descriptors that no rule matches.",
		n.unmatched.Load())
	all.add("tb_rls_repaired_requests_total",
		"Requests with a text that is not UTF-8. Each wrong byte"+
			" was read as four characters, as \\xff.", n.repaired.Load())
	for id, sums := range c.hits() {
		for d, n := range sums {
			all.add("tb_rls_hits_total", "Hits, by the decision of the rule. The hits near the limit are"+
				" also within it, and hits of shadow_mode are also over it. total counts all hits, with"+
				" those that only another rule refused.",
				n, "domain", id.domain, "rule", id.path, "decision", decision(d).String())
		}
	}
}

// pathID identifies a path in metrics.
type pathID struct{ domain, path string }

// hits returns the counts of each path. A path that depends on requests may be the path of another
// rule, too.
func (c collector) hits() map[pathID]*[decisions]uint64 {
	all := map[pathID]*[decisions]uint64{}
	c.service.state.Load().all(func(r *rule) {
		add := func(path string, n *ruleCounts) {
			id := pathID{r.Domain, path}
			if all[id] == nil {
				all[id] = new([decisions]uint64)
			}
			for d := range n {
				all[id][d] += n[d].Load()
			}
		}
		add(r.Path, r.counts)
		r.details.all(add)
	})
	return all
}
