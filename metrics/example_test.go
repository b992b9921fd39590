package metrics_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/metrics"
)

func ExampleRules() {
	limiter := httplimit.PerAddress(1, 1)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.Rules("api", limiter))

	handler := limiter.Middleware(http.NotFoundHandler())
	for range 3 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		if f.GetName() == "tb_keys" {
			m := f.GetMetric()[0]
			fmt.Println(m.GetLabel()[0].GetValue(), "has", m.GetGauge().GetValue(), "key")
		}
	}
	// Output: api has 1 key
}
