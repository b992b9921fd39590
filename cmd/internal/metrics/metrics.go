// Package metrics serves the metrics of tb-proxy to Prometheus, and the metrics that tb-rls has,
// too.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/metrics"
)

// Metrics counts what the rules do not count themselves. It is safe for concurrent use.
type Metrics struct {
	*Process
	upstreamErrors *prometheus.CounterVec
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

// New returns metrics that include the counts of the limiter's rules, and the lines that the log
// has lost. lostLines may be nil.
func New(l *httplimit.Limiter, lostLines func() uint64) *Metrics {
	p := NewProcess("tb_policy", "policy file", true, lostLines)
	register := promauto.With(p)
	m := &Metrics{
		Process: p,
		upstreamErrors: register.NewCounterVec(prometheus.CounterOpts{
			Name: "tb_upstream_errors_total",
			Help: "Errors of the upstream, by reason.",
		}, []string{"reason"}),
		state: newStateMetrics(register),
	}
	for _, r := range []Reason{Connect, Timeout, Response} {
		m.upstreamErrors.WithLabelValues(string(r))
	}
	m.MustRegister(metrics.Rules("", l))
	return m
}

// UpstreamError counts an error of the upstream.
func (m *Metrics) UpstreamError(r Reason) { m.upstreamErrors.WithLabelValues(string(r)).Inc() }
