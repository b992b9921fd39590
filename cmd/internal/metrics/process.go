package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Process has the metrics of every server of tb: its reloads, its log and its process.
type Process struct {
	*prometheus.Registry
	reloads  *prometheus.CounterVec
	reloadOK prometheus.Gauge
	reloaded prometheus.Gauge
}

// NewProcess returns the metrics of a server that reloads something, whose metrics have a prefix.
// loaded says that it has loaded that already. The metrics include the lines that the log has lost.
func NewProcess(prefix, something string, loaded bool, lostLines func() uint64) *Process {
	registry := prometheus.NewRegistry()
	register := promauto.With(registry)
	p := &Process{
		Registry: registry,
		reloads: register.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "_reloads_total",
			Help: "Reloads of the " + something + ", by outcome.",
		}, []string{"outcome"}),
		reloadOK: register.NewGauge(prometheus.GaugeOpts{
			Name: prefix + "_last_reload_successful",
			Help: "1 if the last reload accepted the " + something + ", else 0.",
		}),
	}
	p.reloaded = register.NewGauge(prometheus.GaugeOpts{
		Name: prefix + "_last_reload_timestamp_seconds",
		Help: "Unix time at which the " + something + " in force was accepted, or 0.",
	})
	for _, outcome := range []string{"accepted", "rejected"} {
		p.reloads.WithLabelValues(outcome)
	}
	p.setReloadOK(loaded)
	register.NewCounterFunc(prometheus.CounterOpts{
		Name: "tb_lost_log_lines_total",
		Help: "Lines of the log that were lost because standard error did not take them.",
	}, func() float64 { return float64(lostLines()) })
	p.MustRegister(collectors.NewGoCollector(), collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return p
}

// Reload counts a reload.
func (p *Process) Reload(accepted bool) {
	outcome := "rejected"
	if accepted {
		outcome = "accepted"
	}
	p.reloads.WithLabelValues(outcome).Inc()
	p.setReloadOK(accepted)
}

func (p *Process) setReloadOK(ok bool) {
	if ok {
		p.reloadOK.Set(1)
		p.reloaded.SetToCurrentTime()
	} else {
		p.reloadOK.Set(0)
	}
}

// Handler returns the handler of /metrics.
func (p *Process) Handler() http.Handler {
	return promhttp.HandlerFor(p, promhttp.HandlerOpts{Registry: p})
}
