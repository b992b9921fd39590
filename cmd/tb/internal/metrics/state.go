package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// stateMetrics are about the file of --state. They are 0 without it.
type stateMetrics struct {
	saved, duration prometheus.Gauge
	errors          prometheus.Counter
}

func newStateMetrics() stateMetrics {
	return stateMetrics{
		saved: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tb_state_last_save_timestamp_seconds",
			Help: "Unix time at which the last successful save of the state began.",
		}),
		duration: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tb_state_last_save_duration_seconds",
			Help: "Duration of the last successful save of the state.",
		}),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tb_state_save_errors_total",
			Help: "Saves of the state that failed.",
		}),
	}
}

func (s *stateMetrics) register(r *prometheus.Registry) {
	r.MustRegister(s.saved, s.duration, s.errors)
}

// StateSaved records a save of the state that began at start and has just ended.
func (m *Metrics) StateSaved(start time.Time, err error) {
	if err != nil {
		m.state.errors.Inc()
		return
	}
	m.state.saved.Set(float64(start.UnixNano()) / 1e9)
	m.state.duration.Set(time.Since(start).Seconds())
}
