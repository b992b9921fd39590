package httplimit

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Failures of requests that no proxy can send on lower no adaptive rate.
func TestRequestsThatNoProxyCanForward(t *testing.T) {
	for _, c := range []struct {
		method, host, query string
		want                bool
	}{
		{"", "", "", true},
		{"PATCH", "h.test:80", "a=b&%20", true},
		{"!#$%&'*+-.^_`|~aZ09", "[::1]:80", "", true},
		{"GET", "h_1,2.test.", "", true},
		{"GET /x", "h", "", false},
		{"G\tT", "h", "", false},
		{"G\u00c9T", "h", "", false},
		{"G\x80T", "h", "", false},
		{"GET\x00", "h", "", false},
		{"GET", "h/v1", "", false},
		{"GET", `h\v1`, "", false},
		{"GET", "u@h", "", false},
		{"GET", "h\u00fc", "", false},
		{"GET", "h#", "", false},
		{"GET", "[fe80::1%25x]", "", false},
		{"GET", "h", "a b", false},
		{"GET", "h", " ", false},
	} {
		r := request()
		r.Method, r.Host, r.URL.RawQuery = c.method, c.host, c.query
		if got := CanForward(r); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		s := newSite(t, adaptiveRule(100, 100, adaptiveRange))
		h := s.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
		}))
		for range 100 {
			s.now = s.now.Add(50 * time.Millisecond)
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		if falls := s.perSecond() < 100; falls != c.want {
			t.Errorf("%+v: %v tokens a second", c, s.perSecond())
		}
	}
}
