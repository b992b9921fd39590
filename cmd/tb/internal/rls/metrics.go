package rls

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"

	ratelimitmetrics "github.com/seed-181794aa/ratelimit/metrics"
)

// metrics serves the counts of a service to Prometheus.
type metrics struct {
	registry *prometheus.Registry
	reloads  *prometheus.CounterVec
	reloadOK prometheus.Gauge
	duration prometheus.Histogram
	upstream *upstream
}

// durations are the upper bounds of the buckets of the duration, in seconds.
var durations = []float64{
	10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 1,
}

// newMetrics returns metrics that include the lines that the log has lost.
func newMetrics(s *Service, lostLines func() uint64) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tb_rls_config_reloads_total",
			Help: "Reloads of the configuration, by outcome.",
		}, []string{"outcome"}),
		reloadOK: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tb_rls_config_last_reload_successful",
			Help: "1 if the last reload accepted the configuration, else 0.",
		}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tb_rls_request_seconds",
			Help: "Time from a decoded request to its answer.", Buckets: durations,
		}),
		upstream: &upstream{collector: collector{s}},
	}
	m.upstream.accepted.Store(1)
	for _, outcome := range []string{"accepted", "rejected"} {
		m.reloads.WithLabelValues(outcome)
	}
	m.reloadOK.Set(1)
	lost := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "tb_lost_log_lines_total",
		Help: "Lines of the log that were lost because standard error did not take them.",
	}, func() float64 { return float64(lostLines()) })
	m.registry.MustRegister(m.reloads, m.reloadOK, m.duration, lost, collector{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if s.Shared != nil {
		m.registry.MustRegister(ratelimitmetrics.RedisByRule("", s.inRedis))
	}
	return m
}

// reload counts a reload of the configuration.
func (m *metrics) reload(accepted bool) {
	outcome, last, n := "rejected", 0.0, &m.upstream.rejected
	if accepted {
		outcome, last, n = "accepted", 1, &m.upstream.accepted
	}
	n.Add(1)
	m.reloads.WithLabelValues(outcome).Inc()
	m.reloadOK.Set(last)
}

// addUpstream adds the metrics of envoyproxy/ratelimit.
func (m *metrics) addUpstream() { m.registry.MustRegister(m.upstream) }

// time is an interceptor that measures the duration of requests.
func (m *metrics) time(
	ctx context.Context, r any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	began := time.Now()
	answer, err := handler(ctx, r)
	m.duration.Observe(time.Since(began).Seconds())
	return answer, err
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// collector collects the counts of a service when Prometheus asks, so that they cost a request
// little. Label values come from the configuration, or are bounded.
type collector struct{ service *Service }

var (
	requests = prometheus.NewDesc("tb_rls_requests_total",
		"Requests, by outcome. In shadow mode, shadow counts the refused requests that were answered"+
			" with OK.", []string{"outcome"}, nil)
	requestErrors = prometheus.NewDesc("tb_rls_errors_total",
		"Requests that were answered with an error, by reason.", []string{"reason"}, nil)
	unknown = prometheus.NewDesc("tb_rls_unknown_domains_total",
		"Requests for a domain that the configuration does not have.", nil, nil)
	unmatched = prometheus.NewDesc("tb_rls_unmatched_descriptors_total",
		"Descriptors that no rule matches.", nil, nil)
	repaired = prometheus.NewDesc("tb_rls_repaired_requests_total",
		"Requests with a text that is not UTF-8. Each wrong byte was read as four characters, as \\xff.",
		nil, nil)
	hits = describeRule("tb_rls_hits_total",
		"Hits, by the decision of the rule: within_limit, near_limit, over_limit, shadow_mode. The hits"+
			" near the limit are also within it, and those of shadow_mode are also over it. total counts"+
			" all hits, with those that only another rule refused.", "decision")
	keys      = describeRule("tb_rls_keys", "Keys that have a bucket in memory.")
	evictions = describeRule("tb_rls_evictions_total",
		"Keys evicted to make room. Their bucket was full, or in debt that is forgiven.", "kind")
	forgiven = describeRule("tb_rls_forgiven_tokens_total",
		"Debt of evicted buckets in tokens. At most this many were granted above the limit.")
	refusedNew = describeRule("tb_rls_refused_new_keys_total",
		"Descriptors refused because the table had no room for their key.")

	allMetrics = []*prometheus.Desc{
		requests, requestErrors, unknown, unmatched, repaired, hits, keys, evictions, forgiven,
		refusedNew,
	}
)

func describeRule(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"domain", "rule"}, labels...), nil)
}

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range allMetrics {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, n, labels...)
	}
	n := &c.service.counts
	count(requests, float64(n.allowed.Load()), "ok")
	count(requests, float64(n.refused.Load()), "over_limit")
	count(requests, float64(n.shadowed.Load()), "shadow")
	count(requestErrors, float64(n.invalid.Load()), "invalid")
	count(requestErrors, float64(n.undecided.Load()), "redis")
	count(unknown, float64(n.unknownDomains.Load()))
	count(unmatched, float64(n.unmatched.Load()))
	count(repaired, float64(n.repaired.Load()))
	for id, sums := range c.hits() {
		for i, decision := range decisions {
			count(hits, float64(sums[i]), id.domain, id.path, decision)
		}
	}
	c.service.state.Load().all(func(r *rule) {
		if r.limiter == nil || r.limiter.local == nil {
			return
		}
		s := r.limiter.local.Stats()
		ch <- prometheus.MustNewConstMetric(keys, prometheus.GaugeValue, float64(s.Keys),
			r.Domain, r.Path)
		count(evictions, float64(s.EvictedFull), r.Domain, r.Path, "full")
		count(evictions, float64(s.EvictedInDebt), r.Domain, r.Path, "in_debt")
		count(forgiven, s.Forgiven, r.Domain, r.Path)
		count(refusedNew, float64(s.RefusedNew), r.Domain, r.Path)
	})
}

// inRedis yields the limiters in Redis of the rules in force.
func (s *Service) inRedis(yield func(name string, s ratelimitmetrics.RedisSource) bool) {
	t := s.state.Load()
	for _, c := range t.config.Rules {
		if l := t.rules[c].limiter; l != nil && !yield(c.Domain+" "+c.Path, l.shared) {
			return
		}
	}
}

// pathID identifies a path in metrics.
type pathID struct{ domain, path string }

// decisions are the values of a label of hits.
var decisions = [...]string{"total", "within_limit", "near_limit", "over_limit", "shadow_mode"}

// hits returns the counts of each path. A path that depends on requests may be the path of another
// rule, too.
func (c collector) hits() map[pathID]*[len(decisions)]uint64 {
	all := map[pathID]*[len(decisions)]uint64{}
	c.service.state.Load().all(func(r *rule) {
		add := func(path string, n *ruleCounts) {
			sums := all[pathID{r.Domain, path}]
			if sums == nil {
				sums = new([len(decisions)]uint64)
				all[pathID{r.Domain, path}] = sums
			}
			for i, x := range []uint64{
				n.total.Load(), n.within.Load(), n.near.Load(), n.over.Load(), n.shadow.Load(),
			} {
				sums[i] += x
			}
		}
		add(r.Path, r.counts)
		r.details.all(add)
	})
	return all
}
