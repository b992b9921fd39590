// Package metrics is what tb proxy tells Prometheus.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
	"github.com/seed-181794aa/ratelimit/tb/cas"
)

// Metrics collects what the rules do not count themselves. It is safe for concurrent use.
type Metrics struct {
	registry       *prometheus.Registry
	timings        *cas.Bucket
	decisions      prometheus.Histogram
	upstreamErrors *prometheus.CounterVec
	reloads        *prometheus.CounterVec
	reloadOK       prometheus.Gauge
}

// Reason says what an upstream did wrong.
type Reason string

// All there are: each has its own time series from the start.
const (
	Connect  Reason = "connect"  // no connection
	Timeout  Reason = "timeout"  // no answer in time
	Response Reason = "response" // a bad answer, or one that broke off
)

// decisionBuckets span what a decision takes, in seconds: a microsecond in memory, and
// milliseconds if a store is asked or the processor was busy elsewhere.
var decisionBuckets = []float64{
	5e-7, 1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 1e-3, 1e-2, 1e-1,
}

// timings bounds how many decisions are timed. To time each of very many would cost a good
// part of a decision, and processors would wait for each other.
var timings = tb.Limit{Capacity: 1000, Tokens: 1000, Per: time.Second}

// New returns metrics, with what the rules of the limiter count.
func New(l *httplimit.Limiter) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tb_decision_duration_seconds",
			Help: "Time that deciding on a request took, with finding its rules;" +
				" of 1,000 requests a second on average at most.",
			Buckets: decisionBuckets,
		}),
		upstreamErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tb_upstream_errors_total",
			Help: "Requests that the upstream did not answer as it should, by reason.",
		}, []string{"reason"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tb_policy_reloads_total",
			Help: "Times that the policy file was read again, by outcome.",
		}, []string{"outcome"}),
		reloadOK: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tb_policy_last_reload_successful",
			Help: "Whether the policy file, when it was last read, was accepted.",
		}),
	}
	for _, r := range []Reason{Connect, Timeout, Response} {
		m.upstreamErrors.WithLabelValues(string(r))
	}
	for _, outcome := range []string{"accepted", "rejected"} {
		m.reloads.WithLabelValues(outcome)
	}
	var err error
	if m.timings, err = cas.NewBucket(timings); err != nil {
		panic(err) // the limit is valid
	}
	m.reloadOK.Set(1)
	m.registry.MustRegister(m.decisions, m.upstreamErrors, m.reloads, m.reloadOK, rules{l},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Decision notes how long a decision took that began at start, within timings.
func (m *Metrics) Decision(start time.Time) {
	if d, _ := m.timings.AllowAt(start, 1); d.Allowed { // one token is always a valid cost
		m.decisions.Observe(time.Since(start).Seconds())
	}
}

// UpstreamError counts an error of the upstream.
func (m *Metrics) UpstreamError(r Reason) { m.upstreamErrors.WithLabelValues(string(r)).Inc() }

// Reload counts that the policy was read again.
func (m *Metrics) Reload(accepted bool) {
	outcome, last := "rejected", 0.0
	if accepted {
		outcome, last = "accepted", 1
	}
	m.reloads.WithLabelValues(outcome).Inc()
	m.reloadOK.Set(last)
}

// Handler answers Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}
