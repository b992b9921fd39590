package rls

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What the probes and scripts of envoyproxy/ratelimit call answers here too.
func TestProbes(t *testing.T) {
	r := run(t, yearly("1"), "--shutdown-delay=1s")
	call := func(method, path, body string) (code int, text string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, r.admin+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(b)
	}
	const ask = `{"domain": "d", "descriptors": [{"entries": [{"key": "k", "value": "v"}]}]}`
	for _, c := range []struct {
		method, path, body string
		code               int
		has                string
	}{
		{"GET", "/healthcheck", "", 200, "OK"},
		{"GET", "/rlconfig", "", 200, "d.k: unit=YEAR requests_per_unit=1, shadow_mode: false\n"},
		{"POST", "/json", ask, 200, `"OK"`},
		{"POST", "/json", ask, 429, `"OVER_LIMIT"`},
		{"POST", "/json", `{"domain": `, 400, "unexpected"},
		{"POST", "/json", `{"descriptors": []}`, 400, "domain: want a name"},
		{"POST", "/json", strings.Repeat(" ", maxMessage+1), 413, "too large"},
		{"GET", "/json", "", 404, ""},
	} {
		code, text := call(c.method, c.path, c.body)
		if code != c.code || !strings.Contains(text, c.has) {
			t.Errorf("%s %s %.80s: %d %q, want %d %q", c.method, c.path, c.body, code, text, c.code, c.has)
		}
	}
	go r.stop()
	for range time.Tick(time.Millisecond) {
		if code, _ := call("GET", "/healthcheck", ""); code == http.StatusInternalServerError {
			break
		}
	}
}
