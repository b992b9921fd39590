package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// served starts an admin server for a limiter that grants three, and one more every 10 s.
func served(t *testing.T) (s *Server, admin string, limited http.Handler, now *time.Time) {
	t.Helper()
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rule := httplimit.Rule{Name: "r", Keys: []string{"header:x-api-key"},
		Limit: tb.Limit{Capacity: 3, Tokens: 1, Per: 10 * time.Second}}
	limiter, _ := httplimit.New(httplimit.Rules(rule),
		httplimit.WithLimiterOptions(tb.WithClock(func() time.Time { return clock })),
		httplimit.WithHooks(httplimit.Hooks{
			Refused: func(r *http.Request, e httplimit.Event) { s.Refused(r, e) },
		}))
	limited = limiter.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s = New(Config{Limiter: limiter, Metrics: http.NotFoundHandler(), FormatKey: upper,
		More: map[string]http.HandlerFunc{"POST /json": func(http.ResponseWriter, *http.Request) {}},
	})
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL, limited, &clock
}

// upper formats a key like no other package, so that a test can recognize its output.
func upper(key []httplimit.KeyPart) string { return strings.ToUpper(httplimit.FormatKey(key)) }

func do(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	resp, body := testkit.Do(t, r)
	return resp.StatusCode, body
}

func request(t *testing.T, method, url string) *http.Request {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), method, url, nil)
	return r
}

func state(t *testing.T, admin string) (s snapshot) {
	t.Helper()
	_, body := do(t, request(t, "GET", admin+"/api/state"))
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// The page shows the level of a bucket at any time, and asking takes nothing from it.
func TestLevels(t *testing.T) {
	s, admin, limited, now := served(t)
	take := func(n int) {
		for range n {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("X-Api-Key", "k")
			limited.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	take(3)
	if b := state(t, admin).Buckets; len(b) != 0 {
		t.Errorf("buckets without a refusal: %+v", b)
	}
	take(2)
	for _, want := range []struct {
		after time.Duration
		take  int
		level float64
	}{
		{0, 0, 0}, {5 * time.Second, 0, 0.5}, {15 * time.Second, 0, 2}, {0, 1, 1},
		{time.Second, 0, 1.1}, {time.Hour, 0, 3},
	} {
		*now = now.Add(want.after)
		take(want.take)
		b := state(t, admin).Buckets
		if len(b) != 1 || b[0] != (bucketView{"r", "HEADER:X-API-KEY=K", 2, want.level, 3, 0, 0}) {
			t.Errorf("%+v: %+v", want, b)
		}
	}
	other := httplimit.Rules(httplimit.Rule{Name: "other", Limit: tb.Limit{
		Capacity: 1, Tokens: 1, Per: time.Second}})
	if err := s.Limiter.(*httplimit.Limiter).SetPolicy(other); err != nil {
		t.Fatal(err)
	}
	if v := state(t, admin); len(v.Buckets) != 0 || v.Rules[0].Name != "other" {
		t.Errorf("after a change of policy: %+v", v)
	}
	take(2)
	if b := state(t, admin).Buckets; len(b) != 1 || b[0].Refused != 1 {
		t.Errorf("want one bucket with one refusal: %+v", b)
	}
}

// Buckets that are held are listed, besides the six that refuse most.
func TestHeldBucketsAreListed(t *testing.T) {
	s, admin, _, _ := served(t)
	limit := tb.Limit{Capacity: 5, Tokens: 1, Per: time.Minute}
	for i := range 10 {
		level := tb.Level{Tokens: -2, NextToken: 3 * time.Minute} // it is only empty
		if i < 3 {
			level.NextToken += time.Hour
		}
		for range 1 + i {
			s.RefusedBucket("r", []httplimit.KeyPart{{Name: "k", Value: fmt.Sprint(i)}},
				func() (tb.Limit, tb.Level, error) { return limit, level, nil })
		}
	}
	got := ""
	for _, b := range state(t, admin).Buckets {
		got += fmt.Sprint(b.Key, " ", b.Held, ", ")
	}
	const want = "K=9 0, K=8 0, K=7 0, K=6 0, K=5 0, K=4 0, K=2 3600, K=1 3600, K=0 3600, "
	if got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

// No other web page can send a request that changes anything, or read the answers.
func TestOtherPages(t *testing.T) {
	s, admin, _, _ := served(t)
	r := request(t, "POST", admin+"/json")
	r.Header.Set("Origin", "https://example.com")
	if status, body := do(t, r); status != http.StatusForbidden {
		t.Error(status, body)
	}
	r = request(t, "POST", admin+"/json")
	r.Header.Set("Origin", admin)
	if status, body := do(t, r); status != http.StatusOK {
		t.Error(status, body)
	}
	for host, want := range map[string]int{
		"example.com": 421, "localhost.example.com:80": 421, "localhost": 200, "127.0.0.1:80": 200,
		"[::1]:80": 200, "[::1]": 200, "LOCALHOST:80": 200,
	} {
		r := request(t, "GET", admin+"/api/state")
		r.Host = host
		if status, body := do(t, r); status != want {
			t.Errorf("%s: %d %s", host, status, body)
		}
	}
	// On an address that is not a loopback address any name is accepted.
	elsewhere := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}
	r = httptest.NewRequest(http.MethodGet, "http://admin.example.com/api/state", nil)
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, elsewhere))
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Error(w.Code)
	}
}

// A bucket is reset by the text of the page, which may be a hash, and by the key itself.
func TestReset(t *testing.T) {
	_, admin, limited, _ := served(t)
	for _, c := range []struct {
		rule, key, origin string
		want              int
	}{
		{"r", "HEADER:X-API-KEY=K", "", http.StatusNoContent},
		{"r", "header:x-api-key=k", "", http.StatusNoContent},
		{"r", "HEADER:X-API-KEY=OTHER", "", http.StatusNotFound},
		{"s", "HEADER:X-API-KEY=K", "", http.StatusNotFound},
		{"r", "header:x-api-key=k", "https://example.com", http.StatusForbidden},
	} {
		for range 4 {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("X-Api-Key", "k")
			limited.ServeHTTP(httptest.NewRecorder(), r)
		}
		r := request(t, "POST", admin+"/api/reset")
		form := url.Values{"rule": {c.rule}, "key": {c.key}}.Encode()
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(form)), int64(len(form))
		r.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		level := 0.0
		if c.want == http.StatusNoContent {
			level = 3
		}
		if status, body := do(t, r); status != c.want || state(t, admin).Buckets[0].Level != level {
			t.Errorf("%+v: %d %s, %+v", c, status, body, state(t, admin).Buckets)
		}
	}
}

// A slash at the end makes no difference, and HEAD is answered as GET.
func TestPaths(t *testing.T) {
	_, admin, _, _ := served(t)
	for _, path := range []string{"/", "/api/state", "/api/state/", "/api/state//", "/base.css/",
		"/index.html", "/index.html/",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			if status, _ := do(t, request(t, method, admin+path)); status != http.StatusOK {
				t.Errorf("%s %s: %d", method, path, status)
			}
		}
	}
}

// The page loads nothing from other servers.
func TestPageIsComplete(t *testing.T) {
	_, admin, _, _ := served(t)
	for _, name := range []string{"", "app.js", "charts.js", "base.css", "style.css", "icon.svg"} {
		resp, body := testkit.Do(t, request(t, "GET", admin+"/"+name))
		for _, comment := range []string{"http://www.w3.org/2000/svg",
			"https://github.com/leeoniya/uPlot"} {
			body = strings.ReplaceAll(body, comment, "")
		}
		if resp.StatusCode != http.StatusOK || strings.Contains(body, "://") {
			t.Errorf("/%s: %s %s", name, resp.Status, body)
		}
		const want = "default-src 'self'; base-uri 'none';"
		if got := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, want) {
			t.Errorf("/%s: %s, want %s", name, got, want)
		}
	}
}
