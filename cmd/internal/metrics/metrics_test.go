package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

func TestMetrics(t *testing.T) {
	policy := httplimit.Rules(
		httplimit.Rule{Name: "slow", Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour}},
		httplimit.Rule{Name: "trial", Shadow: true, Keys: []string{"header:x"},
			Limit: tb.Limit{Capacity: 1, Tokens: 1, Per: time.Hour}},
	)
	limiter, _ := httplimit.New(policy)
	handler := limiter.Middleware(http.NotFoundHandler())
	for range 3 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
	m := New(limiter, func() uint64 { return 0 })
	m.UpstreamError(Timeout)
	m.Response(429)
	m.Response(999)
	m.Response(0)
	m.UpstreamHeader(30 * time.Millisecond)
	m.Reload(true)
	m.Reload(false)
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, text := range []string{
		`tb_requests_total{outcome="granted",rule="slow",set=""} 1`,
		`tb_requests_total{outcome="refused",rule="slow",set=""} 2`,
		`tb_requests_total{outcome="shadow_granted",rule="trial",set=""} 0`,
		`tb_requests_total{outcome="shadow_refused",rule="trial",set=""} 0`,
		`tb_keys{rule="slow",set=""} 1`,
		`tb_limit_tokens_per_second{rule="slow",set=""} 0.0002777777777777778`,
		`tb_upstream_errors_total{reason="connect"} 0`,
		`tb_upstream_errors_total{reason="timeout"} 1`,
		`tb_policy_reloads_total{outcome="accepted"} 1`,
		`tb_policy_reloads_total{outcome="rejected"} 1`,
		"tb_policy_last_reload_successful 0",
		"tb_policy_last_reload_timestamp_seconds 1.",
		`tb_responses_total{class="4xx"} 1`,
		`tb_upstream_header_seconds_bucket{le="0.05"} 1`,
		`tb_upstream_header_seconds_bucket{le="0.025"} 0`,
		"go_build_info{",
		"process_start_time_seconds",
	} {
		if !strings.Contains(w.Body.String(), text) {
			t.Errorf("no %s in\n%s", text, w.Body)
		}
	}
}
