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

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
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
		for second := range 3 {
			for i := range 50 {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.Header.Set("X-Rule", []string{"a", "b"}[i%2])
				_, _ = serve(h, r, caddyhttp.HandlerFunc(nothing))
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

// A refusal with status 400 has no wait, and a shadow rule refuses nothing.
func TestLinesOfOtherEvents(t *testing.T) {
	s := start(t, site("api", perHour("keys", "9", "key {header.X-Api-Key}\non_missing reject")+
		perHour("trial", "1", "key none\nshadow")))
	s.want(400)
	for range 2 {
		s.want(200, "X-Api-Key: k")
	}
	for text, field := range map[string]string{
		"limiter api: rule keys needs a key or a path with one meaning": `"level":"info"`,
		"limiter api: rule trial would have refused a request":          `"level":"info"`,
		"is chosen by the client":                                       `"level":"warn"`,
	} {
		lines := s.logged(text)
		if len(lines) == 0 || !strings.Contains(lines[0], field) ||
			!strings.Contains(lines[0], `"limiter":"api"`) || strings.Contains(lines[0], "retry_after") {
			t.Errorf("%s: %q", text, lines)
		}
	}
}
