// Package metrics serves the metrics of tb proxy to Prometheus.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/metrics"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Metrics counts what the rules do not count themselves. It is safe for concurrent use.
type Metrics struct {
	registry       *prometheus.Registry
	timed          *cas.Bucket // bounds the decisions that are timed
	decisions      prometheus.Histogram
	upstreamErrors *prometheus.CounterVec
	refusedConns   prometheus.Counter
	reloads        *prometheus.CounterVec
	reloadOK       prometheus.Gauge
	state          stateMetrics
}

// Reason is the kind of an error of the upstream.
type Reason string

// Each reason has a time series from the start.
const (
	Connect  Reason = "connect"  // no connection
	Timeout  Reason = "timeout"  // no answer within the timeout
	Response Reason = "response" // a malformed answer, or one that broke off
)

// decisionBuckets span the duration of a decision in seconds: a microsecond in memory, and
// milliseconds if the processor is busy.
var decisionBuckets = []float64{
	5e-7, 1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 1e-3, 1e-2, 1e-1,
}

// timedLimit bounds the decisions that are timed. Timing each one would cost a good part of a
// decision at high rates, and processors would contend for the histogram.
var timedLimit = tb.Limit{Capacity: 1000, Tokens: 1000, Per: time.Second}

// New returns metrics that include the counts of the limiter's rules, and the lines that the log
// has lost. lostLines may be nil.
func New(l *httplimit.Limiter, lostLines func() uint64) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tb_decision_duration_seconds",
			Help: "Time to match rules and decide. Sampled: on average at most 1,000" +
				" requests a second, so the count is not the number of requests.",
			Buckets: decisionBuckets,
		}),
		upstreamErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tb_upstream_errors_total",
			Help: "Errors of the upstream, by reason.",
		}, []string{"reason"}),
		refusedConns: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tb_refused_connections_total",
			Help: "Connections closed because their client had too many.",
		}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tb_policy_reloads_total",
			Help: "Reloads of the policy file, by outcome.",
		}, []string{"outcome"}),
		reloadOK: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tb_policy_last_reload_successful",
			Help: "1 if the last reload accepted the policy file, else 0.",
		}),
	}
	for _, r := range []Reason{Connect, Timeout, Response} {
		m.upstreamErrors.WithLabelValues(string(r))
	}
	for _, outcome := range []string{"accepted", "rejected"} {
		m.reloads.WithLabelValues(outcome)
	}
	var err error
	if m.timed, err = cas.NewBucket(timedLimit); err != nil {
		panic(err) // the limit is valid
	}
	m.reloadOK.Set(1)
	m.state = newStateMetrics()
	m.state.register(m.registry)
	lost := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "tb_lost_log_lines_total",
		Help: "Lines of the log that were lost because standard error did not take them.",
	}, func() float64 {
		if lostLines == nil {
			return 0
		}
		return float64(lostLines())
	})
	m.registry.MustRegister(m.decisions, m.upstreamErrors, m.refusedConns, m.reloads, m.reloadOK,
		lost, metrics.Rules("", l),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// ObserveDecision records the time since start as the duration of a decision, unless too many
// are timed already.
func (m *Metrics) ObserveDecision(start time.Time) {
	if d, _ := m.timed.AllowAt(start, 1); d.Allowed { // one token is always a valid cost
		m.decisions.Observe(time.Since(start).Seconds())
	}
}

// UpstreamError counts an error of the upstream.
func (m *Metrics) UpstreamError(r Reason) { m.upstreamErrors.WithLabelValues(string(r)).Inc() }

// ConnectionRefused counts a connection that was closed because its client had too many.
func (m *Metrics) ConnectionRefused() { m.refusedConns.Inc() }

// Reload counts a reload of the policy file.
func (m *Metrics) Reload(accepted bool) {
	outcome, last := "rejected", 0.0
	if accepted {
		outcome, last = "accepted", 1
	}
	m.reloads.WithLabelValues(outcome).Inc()
	m.reloadOK.Set(last)
}

// Handler returns the handler of /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}
