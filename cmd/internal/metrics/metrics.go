// Package metrics serves the metrics of tb-proxy to Prometheus, and the metrics that tb-rls has,
// too.
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/metrics"
)

// Metrics counts what the rules do not count themselves. It is safe for concurrent use.
type Metrics struct {
	*Process
	upstreamErrors *prometheus.CounterVec
	responses      [10]prometheus.Counter // by the first digit of the status; some are nil
	upstream       prometheus.Histogram
	stateSaved     prometheus.Gauge // this and the next one are 0 without --state
	stateErrors    prometheus.Counter
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
// has lost.
func New(l *httplimit.Limiter, lostLines func() uint64) *Metrics {
	p := NewProcess("tb_policy", "policy file", true, lostLines)
	register := promauto.With(p)
	m := &Metrics{
		Process: p,
		upstreamErrors: register.NewCounterVec(prometheus.CounterOpts{
			Name: "tb_upstream_errors_total",
			Help: "Errors of the upstream, by reason.",
		}, []string{"reason"}),
		upstream: register.NewHistogram(prometheus.HistogramOpts{
			Name:    "tb_upstream_header_seconds",
			Help:    "Time from a request to the upstream to the header of its response.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		}),
		stateSaved: register.NewGauge(prometheus.GaugeOpts{
			Name: "tb_state_last_save_timestamp_seconds",
			Help: "Unix time at which the last successful save of the state began.",
		}),
		stateErrors: register.NewCounter(prometheus.CounterOpts{
			Name: "tb_state_save_errors_total",
			Help: "Saves of the state that failed.",
		}),
	}
	responses := register.NewCounterVec(prometheus.CounterOpts{
		Name: "tb_responses_total",
		Help: "Responses to clients, by the class of the status.",
	}, []string{"class"})
	for i := range 5 {
		m.responses[i+1] = responses.WithLabelValues(strconv.Itoa(i+1) + "xx")
	}
	for _, r := range []Reason{Connect, Timeout, Response} {
		m.upstreamErrors.WithLabelValues(string(r))
	}
	m.MustRegister(metrics.Rules("", l))
	return m
}

// Response counts a response with a status. An aborted response may have none, which is 0.
func (m *Metrics) Response(status int) {
	if c := m.responses[status/100]; c != nil {
		c.Inc()
	}
}

// UpstreamHeader records how long the upstream took to begin its response.
func (m *Metrics) UpstreamHeader(d time.Duration) { m.upstream.Observe(d.Seconds()) }

// UpstreamError counts an error of the upstream.
func (m *Metrics) UpstreamError(r Reason) { m.upstreamErrors.WithLabelValues(string(r)).Inc() }

// StateSaved records a save of the state that began at start.
func (m *Metrics) StateSaved(start time.Time, err error) {
	if err != nil {
		m.stateErrors.Inc()
		return
	}
	m.stateSaved.Set(float64(start.UnixNano()) / 1e9)
}
