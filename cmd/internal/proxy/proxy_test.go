package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

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
