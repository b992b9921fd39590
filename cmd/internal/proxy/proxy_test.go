package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// Each client of a trusted proxy has a bucket. A client that is not trusted cannot choose
// another bucket by its X-Forwarded-For.
func TestTrustedProxies(t *testing.T) {
	statuses := func(change func(*Config)) (all []int) {
		_, url, _ := start(t, two, func(http.ResponseWriter, *http.Request) {}, change)
		for _, client := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.1"} {
			r, _ := get(t, url, "X-Forwarded-For", client)
			all = append(all, r.StatusCode)
		}
		return all
	}
	trust := func(c *Config) {
		c.Client.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	}
	if got := fmt.Sprint(statuses(trust)); got != "[200 200 200 429]" {
		t.Errorf("trusted: %s", got)
	}
	if got := fmt.Sprint(statuses(func(*Config) {})); got != "[200 200 429 429]" {
		t.Errorf("untrusted: %s", got)
	}
}

// Requests never add time series, whatever is in them.
func TestSeriesAreBounded(t *testing.T) {
	p, _, _ := start(t, byKey, nil)
	before := strings.Count(scrape(t, p), "\n")
	handler := p.Limiter.Middleware(http.NotFoundHandler())
	for i := range 10_000 {
		r := httptest.NewRequest(fmt.Sprint("M", i), fmt.Sprint("/", i), nil)
		r.Host = fmt.Sprint("h", i)
		r.Header.Set("X-Api-Key", fmt.Sprint(i/2)) // the second of two is refused
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	after := scrape(t, p)
	if n := strings.Count(after, "\n"); n != before ||
		!strings.Contains(after, `tb_requests_total{outcome="refused",rule="by-key",set=""} 5000`) {
		t.Errorf("%d lines of metrics before and %d after:\n%s", before, n, after)
	}
}
