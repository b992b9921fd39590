package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestLimits(t *testing.T) {
	served := 0
	_, url, now := start(t, two, func(w http.ResponseWriter, r *http.Request) {
		served++
		fmt.Fprint(w, "hello ", r.URL)
	})
	for i, want := range []struct {
		after                time.Duration
		status               int
		remaining, retry, to string
	}{
		{0, 200, "1", "", "hello /a?b=c"},
		{0, 200, "0", "", "hello /a?b=c"},
		{0, 429, "0", "1", "quota-exceeded"},
		{9 * time.Second, 429, "0", "1", "quota-exceeded"},
		{time.Second, 200, "0", "", "hello /a?b=c"},
	} {
		now.advance(want.after)
		r, body := get(t, url+"/a?b=c")
		h := r.Header
		if r.StatusCode != want.status || h.Get("RateLimit-Remaining") != want.remaining ||
			(h.Get("Retry-After") == "") != (want.retry == "") || !strings.Contains(body, want.to) {
			t.Errorf("request %d: %s %v %q, want %+v", i, r.Status, h, body, want)
		}
	}
	if served != 3 {
		t.Errorf("the upstream got %d requests, want 3", served)
	}
}

func TestNoPolicyLimitsNothing(t *testing.T) {
	_, url, _ := start(t, "", func(http.ResponseWriter, *http.Request) {})
	for range 20 {
		if r, _ := get(t, url); r.StatusCode != http.StatusOK || r.Header.Get("RateLimit") != "" {
			t.Fatal(r.Status, r.Header)
		}
	}
}

func theirs(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("RateLimit-Remaining", "99")
	w.Header().Set("X-RateLimit-Limit", "99")
	w.Header().Set("RateLimit", `"theirs";r=99;t=1`)
}

// The upstream's fields of the same name give way, and its items in lists stay.
func TestFieldsOfTheUpstream(t *testing.T) {
	_, url, _ := start(t, two, theirs)
	r, _ := get(t, url)
	h := r.Header
	all := strings.Join(h.Values("RateLimit"), ", ")
	if len(h.Values("RateLimit-Remaining")) != 1 || h.Get("RateLimit-Remaining") != "1" ||
		h.Get("X-RateLimit-Limit") != "" || all != `"two";r=1;t=10, "theirs";r=99;t=1` {
		t.Error(h)
	}
}

// If only refusals have fields, the upstream's stay, and so do those of its hints.
func TestSilentGrants(t *testing.T) {
	_, url, _ := start(t, two, func(w http.ResponseWriter, r *http.Request) {
		theirs(w, r)
		w.WriteHeader(http.StatusEarlyHints)
	}, func(c *Config) { c.SilentGrants = true })
	var hint string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
			hint = h.Get("RateLimit-Remaining")
			return nil
		},
	})
	for range 2 {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		r, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if hint != "99" {
			t.Errorf("the hint has %q", hint)
		}
		h := r.Header
		if r.StatusCode != http.StatusOK || h.Get("RateLimit-Limit") != "" ||
			h.Get("RateLimit-Remaining") != "99" || h.Get("X-RateLimit-Limit") != "99" ||
			fmt.Sprint(h.Values("RateLimit")) != `["theirs";r=99;t=1]` {
			t.Error(r.Status, h)
		}
	}
	r, _ := get(t, url)
	if h := r.Header; r.StatusCode != http.StatusTooManyRequests ||
		h.Get("RateLimit-Limit") != "2" || h.Get("RateLimit-Remaining") != "0" {
		t.Error(r.Status, h)
	}
}

// An informational response, such as 103, must not take the limiter's fields along.
func TestFieldsSurviveInformationalResponses(t *testing.T) {
	_, url, _ := start(t, two, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.Header().Set("RateLimit-Remaining", "99") // is said of the hint
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.WriteHeader(http.StatusTeapot)
	})
	r, _ := get(t, url)
	if r.StatusCode != http.StatusTeapot || r.Header.Get("Link") != "" ||
		fmt.Sprint(r.Header.Values("RateLimit-Remaining")) != "[1]" ||
		fmt.Sprint(r.Header.Values("RateLimit")) != `["two";r=1;t=10]` {
		t.Error(r.Status, r.Header)
	}
}

func TestForwarded(t *testing.T) {
	var got http.Header
	var host string
	upstream := func(_ http.ResponseWriter, r *http.Request) { got, host = r.Header, r.Host }
	trust := func(c *Config) { c.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }
	nobody := func(*Config) {}
	for _, tt := range []struct {
		name                      string
		change                    func(*Config)
		forwarded, proto, forHost string
		realIP, port              string
	}{
		{"untrusted", nobody, "127.0.0.1", "http", "app.test", "", ""},
		{"trusted", trust, "192.0.2.9, 127.0.0.1", "https", "outer.test", "192.0.2.9", "443"},
	} {
		_, url, _ := start(t, "", upstream, tt.change)
		get(t, url, "Host", "app.test", "X-Forwarded-For", "192.0.2.9", "X-Forwarded-Proto", "https",
			"X-Forwarded-Host", "outer.test", "X-Real-Ip", "192.0.2.9", "X_Forwarded_For", "192.0.2.9",
			"Forwarded", "for=192.0.2.9", "X-Forwarded-Port", "443", "X_real-IP", "192.0.2.9")
		if got.Get("X-Forwarded-For") != tt.forwarded || got.Get("X-Forwarded-Proto") != tt.proto ||
			got.Get("X-Forwarded-Host") != tt.forHost || got.Get("X-Real-Ip") != tt.realIP ||
			got.Get("X-Forwarded-Port") != tt.port || got.Get("X_Forwarded_For") != "" ||
			got.Get("X_real-Ip") != "" || got.Get("Forwarded") != "" {
			t.Errorf("%s: %v", tt.name, got)
		}
		if host != "app.test" {
			t.Errorf("%s: Host %q", tt.name, host)
		}
	}
}

// Behind a trusted proxy each client has a bucket, and one that is not trusted cannot have
// others by what it claims.
func TestTrustedProxies(t *testing.T) {
	statuses := func(change func(*Config)) (all []int) {
		_, url, _ := start(t, two, func(http.ResponseWriter, *http.Request) {}, change)
		for _, client := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.1"} {
			r, _ := get(t, url, "X-Forwarded-For", client)
			all = append(all, r.StatusCode)
		}
		return all
	}
	trust := func(c *Config) { c.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} }
	if got := fmt.Sprint(statuses(trust)); got != "[200 200 200 429]" {
		t.Errorf("trusted: %s", got)
	}
	if got := fmt.Sprint(statuses(func(*Config) {})); got != "[200 200 429 429]" {
		t.Errorf("untrusted: %s", got)
	}
}

func TestUpstreamHost(t *testing.T) {
	_, url, _ := start(t, "", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Host)
	}, func(c *Config) { c.PreserveHost = false })
	if _, host := get(t, url, "Host", "app.test"); !strings.HasPrefix(host, "127.0.0.1:") {
		t.Errorf("Host %q", host)
	}
}

func TestUpstreamErrors(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	nowhere, _ := url.Parse(closed.URL)
	log := newTranscript()
	p, front, _ := start(t, two, nil, func(c *Config) {
		c.Upstream, c.Log = nowhere, log.logger()
	})
	if r, _ := get(t, front); r.StatusCode != http.StatusBadGateway {
		t.Errorf("%s, want 502", r.Status)
	}
	log.until(t, "reason=connect")
	for err, want := range map[error]int{
		&url.Error{Op: "Get", Err: timeout{}}: http.StatusGatewayTimeout,
		errors.New("malformed HTTP response"): http.StatusBadGateway,
		context.Canceled:                      statusClientGone,
	} {
		w := httptest.NewRecorder()
		p.upstreamFailed(w, httptest.NewRequest(http.MethodGet, "/", nil), err)
		if w.Code != want {
			t.Errorf("%v: %d, want %d", err, w.Code, want)
		}
	}
	metrics := scrape(t, p)
	for _, want := range []string{`{reason="connect"} 1`, `{reason="timeout"} 1`,
		`{reason="response"} 1`} {
		if !strings.Contains(metrics, "tb_upstream_errors_total"+want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
}

type timeout struct{}

func (timeout) Error() string { return "late" }
func (timeout) Timeout() bool { return true }

func scrape(t *testing.T, p *Proxy) string {
	t.Helper()
	w := httptest.NewRecorder()
	p.Metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// An answer that breaks off reaches the client broken, and is counted.
func TestUpstreamBreaksOff(t *testing.T) {
	p, url, _ := start(t, two, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		fmt.Fprint(w, "half")
	})
	r, err := http.Get(url)
	if err == nil {
		_, err = io.ReadAll(r.Body)
		r.Body.Close()
	}
	if err == nil {
		t.Error("the client was not told")
	}
	if !strings.Contains(scrape(t, p), `tb_upstream_errors_total{reason="response"} 1`) {
		t.Error(scrape(t, p))
	}
}

// Whatever clients send, there are no more time series.
func TestSeriesAreBounded(t *testing.T) {
	p, _, _ := start(t, byKey, nil)
	before := strings.Count(scrape(t, p), "\n")
	handler := p.Limiter.Middleware(http.NotFoundHandler())
	for i := range 10_000 {
		r := httptest.NewRequest(fmt.Sprint("M", i), fmt.Sprint("/", i), nil)
		r.Host = fmt.Sprint("h", i)
		r.Header.Set("X-Api-Key", fmt.Sprint(i/2)) // of two, one is refused
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	after := scrape(t, p)
	if n := strings.Count(after, "\n"); n != before ||
		!strings.Contains(after, `tb_requests_total{outcome="refused",rule="by-key",set=""} 5000`) {
		t.Errorf("%d lines before and %d after:\n%s", before, n, after)
	}
}

func TestDecisionsAreTimed(t *testing.T) {
	p, url, _ := start(t, two, func(http.ResponseWriter, *http.Request) {})
	for range 3 { // two are granted and one is refused
		get(t, url)
	}
	if !strings.Contains(scrape(t, p), "tb_decision_duration_seconds_count 3") {
		t.Error(scrape(t, p))
	}
}
