package rls

import (
	"net/http"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// With a flag, the counts have also the names of envoyproxy/ratelimit. A path counts by its first
// two keys, without the dots and colons of a value that is an address.
func TestUpstreamMetrics(t *testing.T) {
	r := run(t, "domain: d\ndescriptors:\n"+
		"  - key: k\n    rate_limit: &l {unit: year, requests_per_unit: 1}\n    descriptors:\n"+
		"      - key: a\n        value: 192.0.2.7:80\n        rate_limit: *l\n"+
		"        descriptors:\n          - {key: b, rate_limit: *l}\n",
		"--upstream-metrics")
	client := ratelimit.NewRateLimitServiceClient(dial(t, r.address))
	for _, d := range []string{"k=v", "k=v", "k=v,a=192.0.2.7:80", "k=v,a=192.0.2.7:80,b=y"} {
		if _, err := client.ShouldRateLimit(t.Context(), request(0, d)); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = client.ShouldRateLimit(t.Context(), &ratelimit.RateLimitRequest{})
	_, _ = grpc_health_v1.NewHealthClient(dial(t, r.address)).Check(t.Context(),
		&grpc_health_v1.HealthCheckRequest{}) // is not a request
	metrics := get(t, r.admin+"/metrics")
	for _, want := range []string{
		`ratelimit_service_rate_limit_total_hits{domain="d",key1="k",key2=""} 2`,
		`ratelimit_service_rate_limit_over_limit{domain="d",key1="k",key2=""} 1`,
		`ratelimit_service_rate_limit_within_limit{domain="d",key1="k",key2="a_192_0_2_7_80"} 2`,
		`ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 5`,
		`ratelimit_service_should_rate_limit_error{err_type="service_error"} 1`,
		`ratelimit_service_config_load_success 1`,
		`ratelimit_service_config_load_error 0`,
		`tb_rls_request_seconds_count 5`,
		`ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"} 5`,
	} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
}

// What the probes and scripts of envoyproxy/ratelimit call answers here too.
func TestProbes(t *testing.T) {
	r := run(t, yearly("1"), "--shutdown-delay=1s")
	call := func(method, path, body string) (code int, text string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, r.admin+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, text := testkit.Do(t, q)
		allow := answer.Header.Get("Allow")
		if answer.StatusCode == http.StatusMethodNotAllowed && allow != "POST" {
			t.Errorf("%s %s: Allow %q", method, path, allow)
		}
		return answer.StatusCode, text
	}
	const ask = `{"domain": "d", "descriptors": [{"entries": [{"key": "k", "value": "v"}]}]}`
	for _, c := range []struct {
		method, path, body string
		code               int
		has                string
	}{
		{"GET", "/healthcheck", "", 200, "OK"},
		{"GET", "/rlconfig", "", 200, "d.k: unit=YEAR requests_per_unit=1, shadow_mode: false, quota"},
		{"POST", "/json", ask, 200, `"OK"`},
		{"POST", "/json", ask, 429, `"OVER_LIMIT"`},
		{"POST", "/api/reset", "rule=d/k&key=k%3Dv", 204, ""},
		{"POST", "/json", ask, 200, `"OK"`},
		{"POST", "/api/reset", "rule=d/k&key=v", 404, "no such bucket"},
		{"POST", "/json", `{"domain": `, 400, "unexpected"},
		{"POST", "/json", `{"descriptors": []}`, 400, "domain: want a name"},
		{"POST", "/json", strings.Repeat(" ", maxMessage+1), 413, "too large"},
		{"GET", "/json", "", 405, "want POST with a RateLimitRequest"},
		{"PUT", "/json", ask, 405, "want POST with a RateLimitRequest"},
		{"POST", "/json/", `{"descriptors": []}`, 400, "domain: want a name"},
		{"GET", "/healthcheck/", "", 200, "OK"},
	} {
		code, text := call(c.method, c.path, c.body)
		if code != c.code || !strings.Contains(text, c.has) {
			t.Errorf("%s %s %.80s: %d %q, want %d %q", c.method, c.path, c.body, code, text, c.code, c.has)
		}
	}
	go r.Stop()
	for range time.Tick(time.Millisecond) {
		if code, _ := call("GET", "/healthcheck", ""); code == http.StatusInternalServerError {
			break
		}
	}
}
