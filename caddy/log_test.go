package tokenbucket

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// Each rule has one line a second.
func TestRefusalsDoNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, lines := observer.New(zap.InfoLevel)
		rule := func(name string) string {
			return fmt.Sprintf(`{"name": %[1]q, "limit_keys": [], "match": {"header:x-rule": %[1]q},
				"algorithm_config": {"tokens_per_second": 0.001, "burst": 1}}`, name)
		}
		h := newHandler(t, `{"rules": [`+rule("a")+`, `+rule("b")+`]}`)
		h.app.events = sampled(zap.New(core))
		ok := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
		for second := range 3 {
			for i := range 50 {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.Header.Set("X-Rule", []string{"a", "b"}[i%2])
				_ = serve(h, r, ok)
			}
			if got, want := lines.Len(), 2*(second+1); got != want {
				t.Errorf("%d lines after %d seconds, want %d", got, second, want)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestALineHasTheRequestAndNoSecrets(t *testing.T) {
	rule := perHour("keys", "1", "key {http.request.header.X-Api-Key} {client_ip}")
	for show, want := range map[string]string{
		"":            "header:x-api-key=sha256:2bb80d537b1d ip:address=127.0.0.1",
		"show_keys\n": "header:x-api-key=secret ip:address=127.0.0.1",
	} {
		s := start(t, site("api", show+rule))
		s.want(200, "X-Api-Key: secret")
		s.want(429, "X-Api-Key: secret", "/x?q=secret")
		lines := s.logged("rule keys refused a request")
		if len(lines) != 1 {
			t.Fatalf("%d lines, want 1", len(lines))
		}
		var line map[string]any
		if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"key": want, "limiter": "api", "rule": "keys", "client_ip": "127.0.0.1", "method": "GET",
			"path": "/x", "level": "info", "logger": "token_bucket",
		} {
			if line[name] != want {
				t.Errorf("%s is %v, want %s", name, line[name], want)
			}
		}
		if line["retry_after"] == "" {
			t.Error("no retry_after")
		}
	}
}

// A request that is refused with 400 has a line of its own, because no wait helps.
func TestARequestWithoutItsKeyIsNotLoggedAsRefused(t *testing.T) {
	s := start(t, site("api", perHour("keys", "1", "key {header.X-Api-Key}\non_missing reject")))
	s.want(400)
	if lines := s.logged("refused a request"); len(lines) > 0 {
		t.Errorf("%q", lines)
	}
	lines := s.logged("limiter api: rule keys needs a key or a path with one meaning")
	if len(lines) != 1 || strings.Contains(lines[0], "retry_after") {
		t.Errorf("%q", lines)
	}
}

func TestWarningsOfThePolicyAreInTheLog(t *testing.T) {
	s := start(t, site("api", perHour("keys", "1", "key {http.request.header.X-Api-Key}")))
	if lines := s.logged("is chosen by the client"); len(lines) != 1 ||
		!strings.Contains(lines[0], `"level":"warn"`) || !strings.Contains(lines[0], `"limiter":"api"`) {
		t.Errorf("%q", lines)
	}
}

func TestMetrics(t *testing.T) {
	s := start(t, site("api", perHour("r", "2", "key {client_ip}")+
		perHour("trial", "1", "key none\nshadow")))
	for range 2 {
		s.want(200)
	}
	s.want(429)
	if err := s.load(site("api", perHour("r", "2", "key {client_ip}"))); err != nil {
		t.Fatal(err)
	}
	s.want(429)
	const help = "Requests that the rule granted, refused with 429 or rejected with 400. " +
		"A request that only other rules refused is not counted."
	contains(t, `
# HELP tb_requests_total `+help+`
# TYPE tb_requests_total counter
tb_requests_total{limiter="api",outcome="granted",rule="r",set="r"} 2
tb_requests_total{limiter="api",outcome="refused",rule="r",set="r"} 2
tb_requests_total{limiter="api",outcome="rejected",rule="r",set="r"} 0
tb_requests_total{limiter="api",outcome="shadow_granted",rule="r",set="r"} 0
tb_requests_total{limiter="api",outcome="shadow_refused",rule="r",set="r"} 0
`, "tb_requests_total")
	contains(t, `
# HELP tb_keys Keys that have a bucket.
# TYPE tb_keys gauge
tb_keys{limiter="api",rule="r",set="r"} 1
`, "tb_keys")
	problems, err := testutil.GatherAndLint(registry(), names(t)...)
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

// registry is the one that the admin API of Caddy serves.
func registry() *prometheus.Registry {
	ctx := caddy.ActiveContext()
	return ctx.GetMetricsRegistry()
}

// names returns the names of the metrics of this module.
func names(t *testing.T) (all []string) {
	t.Helper()
	families, err := registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if name := f.GetName(); strings.HasPrefix(name, "tb_") {
			all = append(all, name)
		}
	}
	return all
}

func contains(t *testing.T, text string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(registry(), strings.NewReader(text), names...); err != nil {
		t.Error(err)
	}
}
