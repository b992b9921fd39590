package proxy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// usage is a policy with a bucket of 100 tokens. The estimate is 10, and the cost is in the
// response.
func usage(source string) string {
	return `{"rules": [{"name": "usage", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 100,
		"default_cost": 10, "cost_source": "` + source + `"}}]}`
}

var usageInHeader = usage("response:header:x-usage")

func left(p *Proxy) float64 {
	return p.Limiter.Explain(httptest.NewRequest(http.MethodGet, "/", nil))[0].Level.Tokens
}

// wantLeft checks the tokens in the only bucket. net/http sends the end of a response when it has
// been settled.
func wantLeft(t *testing.T, p *Proxy, want float64) {
	t.Helper()
	if got := left(p); got != want {
		t.Errorf("%v left, want %v", got, want)
	}
}

// awaitSettled waits for the settlements of requests that the client does not see the end of.
func awaitSettled(p *Proxy, reported, estimated uint64) {
	for {
		st := p.Limiter.Stats()[0]
		if st.Settled == reported && st.Estimated == estimated {
			return
		}
		runtime.Gosched()
	}
}

// A request costs nothing if there is no connection to the upstream. If the upstream may have
// worked on it, it costs the estimate.
func TestUnansweredRequests(t *testing.T) {
	closed, plain := httptest.NewServer(nil), httptest.NewServer(nil)
	closed.Close()
	t.Cleanup(plain.Close)
	for source, upstream := range map[string]string{
		"response:header:x-usage": closed.URL,
		"response:bytes":          strings.Replace(plain.URL, "http", "https", 1), // it has no TLS
	} {
		p, front, _ := start(t, usage(source), nil, to(upstream))
		if r, _ := get(t, front); r.StatusCode != http.StatusBadGateway {
			t.Error(r.Status)
		}
		wantLeft(t, p, 100)
		wantUpstreamError(t, p, "connect")
	}
	var stopping *httptest.Server // with the second request, which net/http then sends again
	stopping = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stop" {
			_ = stopping.Listener.Close()
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(stopping.Close)
	p, front, _ := start(t, usageInHeader, nil, to(stopping.URL))
	get(t, front)
	get(t, front+"/stop")
	wantLeft(t, p, 80)
	hang := make(chan struct{})
	p, front, _ = start(t, usageInHeader, func(http.ResponseWriter, *http.Request) { <-hang },
		func(c *Config) { c.Timeout = time.Millisecond })
	defer close(hang)
	if r, _ := get(t, front); r.StatusCode != http.StatusGatewayTimeout {
		t.Error(r.Status)
	}
	awaitSettled(p, 0, 1)
	wantLeft(t, p, 90)
}

// A WebSocket costs what the header of its answer reports, or the estimate.
func TestWebSocketsSettle(t *testing.T) {
	for report, want := range map[string]struct {
		left                float64
		reported, estimated uint64
	}{"": {90, 0, 1}, "35": {65, 1, 0}} {
		p, front, _ := start(t, usageInHeader, func(w http.ResponseWriter, r *http.Request) {
			if report != "" {
				w.Header().Set("X-Usage", report)
			}
			echo(w, r)
		})
		c := dial(t, front)
		say(t, c)
		c.Close(websocket.StatusNormalClosure, "")
		awaitSettled(p, want.reported, want.estimated)
		wantLeft(t, p, want.left)
	}
	p, front, _ := start(t, usage("response:bytes"), echo)
	dial(t, front).Close(websocket.StatusNormalClosure, "")
	awaitSettled(p, 0, 1)
	wantLeft(t, p, 90)
}

// A request costs what its status says: a WebSocket has 101, and a client that leaves has none.
func TestStatusesSettle(t *testing.T) {
	policy := strings.Replace(usage("response:status"), `"rps"`,
		`"status_costs": {"1xx": 30, "4xx": 0, "5xx": 0}, "rps"`, 1)
	p, front, _ := start(t, policy, echo)
	dial(t, front).Close(websocket.StatusNormalClosure, "")
	awaitSettled(p, 1, 0)
	wantLeft(t, p, 70)

	ctx, leave := context.WithCancel(t.Context())
	p, front, _ = start(t, policy, func(_ http.ResponseWriter, r *http.Request) {
		leave()
		<-r.Context().Done()
	})
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, front, nil)
	if _, err := http.DefaultClient.Do(r); err == nil {
		t.Error("the client has not left")
	}
	awaitSettled(p, 0, 1)
	wantLeft(t, p, 90)
}
