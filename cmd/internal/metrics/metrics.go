// Package metrics serves the metrics of tb-proxy to Prometheus, and the metrics that tb-rls has,
// too.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/metrics"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Metrics counts what the rules do not count themselves. It is safe for concurrent use.
type Metrics struct {
	*Process
	timed          *cas.Bucket // bounds the decisions that are timed
	decisions      prometheus.Histogram
	upstreamErrors *prometheus.CounterVec
	refusedConns   prometheus.Counter
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
	p := NewProcess("tb_policy", "policy file", true, lostLines)
	register := promauto.With(p)
	m := &Metrics{
		Process: p,
		decisions: register.NewHistogram(prometheus.HistogramOpts{
			Name: "tb_decision_duration_seconds",
			Help: "Time to match rules and decide. Sampled: on average at most 1,000" +
				" requests a second, so the count is not the number of requests.",
			Buckets: decisionBuckets,
		}),
		upstreamErrors: register.NewCounterVec(prometheus.CounterOpts{
			Name: "tb_upstream_errors_total",
			Help: "Errors of the upstream, by reason.",
		}, []string{"reason"}),
		refusedConns: register.NewCounter(prometheus.CounterOpts{
			Name: "tb_refused_connections_total",
			Help: "Connections closed because their client had too many.",
		}),
		state: newStateMetrics(register),
	}
	for _, r := range []Reason{Connect, Timeout, Response} {
		m.upstreamErrors.WithLabelValues(string(r))
	}
	var err error
	if m.timed, err = cas.NewBucket(timedLimit); err != nil {
		panic(err) // the limit is valid
	}
	m.MustRegister(metrics.Rules("", l))
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
