package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// stateMetrics are about the file of --state. They are 0 without it.
type stateMetrics struct {
	saved  prometheus.Gauge
	errors prometheus.Counter
}

func newStateMetrics(register promauto.Factory) stateMetrics {
	return stateMetrics{
		saved: register.NewGauge(prometheus.GaugeOpts{
			Name: "tb_state_last_save_timestamp_seconds",
			Help: "Unix time at which the last successful save of the state began.",
		}),
		errors: register.NewCounter(prometheus.CounterOpts{
			Name: "tb_state_save_errors_total",
			Help: "Saves of the state that failed.",
		}),
	}
}

// StateSaved records a save of the state that began at start.
func (m *Metrics) StateSaved(start time.Time, err error) {
	if err != nil {
		m.state.errors.Inc()
		return
	}
	m.state.saved.Set(float64(start.UnixNano()) / 1e9)
}
