package proxy

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

func TestForwarded(t *testing.T) {
	var got http.Header
	var host string
	upstream := func(_ http.ResponseWriter, r *http.Request) { got, host = r.Header, r.Host }
	trust := func(c *Config) {
		c.Client.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	for _, tt := range []struct {
		name                      string
		change                    func(*Config)
		host                      string
		forwarded, proto, forHost string
		realIP, port              string
	}{
		{"untrusted", func(c *Config) { c.PreserveHost = false }, "127.0.0.1:", "127.0.0.1", "http",
			"app.test", "", ""},
		{"trusted", trust, "app.test", "192.0.2.9, 127.0.0.1", "https", "outer.test",
			"192.0.2.9", "443"},
	} {
		policy := strings.ReplaceAll(two, "ip:address", "header:forwarded")
		_, url, _ := start(t, policy, upstream, tt.change)
		r, _ := get(t, url, "Host", "app.test", "X-Forwarded-For", "192.0.2.9", "X-Forwarded-Proto",
			"https", "X-Forwarded-Host", "outer.test", "X-Real-Ip", "192.0.2.9", "X_Forwarded_For",
			"x", "Forwarded", "for=192.0.2.9", "X-Forwarded-Port", "443", "X_real-IP", "192.0.2.9")
		if got.Get("X-Forwarded-For") != tt.forwarded || got.Get("X-Forwarded-Proto") != tt.proto ||
			got.Get("X-Forwarded-Host") != tt.forHost || got.Get("X-Real-Ip") != tt.realIP ||
			got.Get("X-Forwarded-Port") != tt.port || got.Get("X_Forwarded_For") != "" ||
			got.Get("X_real-Ip") != "" || got["Forwarded"] != nil || r.Header["Ratelimit"] != nil {
			t.Errorf("%s: %v, %v", tt.name, got, r.Header)
		}
		if !strings.HasPrefix(host, tt.host) {
			t.Errorf("%s: Host %q", tt.name, host)
		}
	}
}

// The field that names the client is there only from a trusted proxy, for the rules, too.
func TestClientAddressHeaderOfAnUntrustedPeer(t *testing.T) {
	for _, trusted := range [][]netip.Prefix{nil, {netip.MustParsePrefix("127.0.0.0/8")}} {
		_, url, _ := start(t, strings.Replace(two, "ip:address", "header:cf-connecting-ip", 1),
			func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, r.Header.Get("CF-Connecting-IP"))
			}, func(c *Config) {
				c.Client.Trusted, c.Client.Header = trusted, "cf-connecting-ip"
			})
		r, body := get(t, url, "CF-Connecting-IP", "192.0.2.9")
		applies := r.Header.Get("RateLimit") != ""
		if passed := body != ""; passed != (trusted != nil) || applies != passed {
			t.Errorf("trusted %v: the upstream got %q, the rule applies: %t", trusted, body, applies)
		}
	}
}

// A client cannot get past the rules of a host with no host: the upstream gets its own.
func TestRequestsWithoutAHost(t *testing.T) {
	_, url, _ := start(t, `{"policies": [{"id": "a", "spec": {
		"selector": {"hosts": ["127.0.0.1"]}, `+two[1:]+`}]}`,
		func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Host", r.Host) })
	for _, request := range []string{"GET / HTTP/1.0\n\n", "GET / HTTP/1.1\nHost:\n\n"} {
		h := connect(t, url, request).response(t, "GET").Header
		if !strings.HasPrefix(h.Get("X-Host"), "127.0.0.1:") || h.Get("RateLimit-Limit") != "2" {
			t.Errorf("%s: %v", request, h)
		}
	}
}

// An upgrade to HTTP/2 would let any number of requests pass uncounted.
func TestNoOtherUpgradeThanWebSocket(t *testing.T) {
	_, url, _ := start(t, two, nil, rawUpstream(t, func(c rawConn) {
		r, err := http.ReadRequest(c.Reader)
		if err != nil {
			return
		}
		text := fmt.Sprint(r.Header["Upgrade"], r.Header["Connection"], r.Header["Http2-Settings"])
		fmt.Fprintf(c.Conn, "HTTP/1.1 101 OK\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nX: %s\r\n\r\n",
			text)
		_, _ = io.Copy(io.Discard, c)
	}))
	c := connect(t, url, "GET / HTTP/1.1\nHost: h\nConnection: Upgrade, HTTP2-Settings\n"+
		"Upgrade: h2c\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\n\n")
	if r := c.response(t, "GET"); r.StatusCode != http.StatusBadGateway {
		t.Error(r)
	}
	_, url, _ = start(t, two, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header["Upgrade"], r.Header["Connection"], r.Header["Http2-Settings"])
	})
	_, body := get(t, url, "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c",
		"HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA")
	if body != "[] [] []" {
		t.Error(body)
	}
}

func TestUpstreamErrors(t *testing.T) {
	p, _, _ := start(t, two, nil)
	for err, want := range map[error]int{
		os.ErrDeadlineExceeded: http.StatusGatewayTimeout,
		context.Canceled:       statusClientGone,
		// A Go server says so if one field of a header is longer than a header may be.
		errors.New("http2: server sent GOAWAY and closed the connection; LastStreamID=1, " +
			"ErrCode=COMPRESSION_ERROR"): http.StatusBadGateway,
		// Of a lookup, because the proxy has too many connections.
		&net.OpError{Op: "dial", Err: errors.New(syscall.EMFILE.Error())}: http.StatusBadGateway,
	} {
		w := httptest.NewRecorder()
		rec := &responseRecorder{ResponseWriter: w, proxy: p}
		p.upstreamFailed(rec, httptest.NewRequest(http.MethodGet, "/", nil), err)
		if w.Code != want {
			t.Errorf("%v: %d, want %d", err, w.Code, want)
		}
	}
	wantUpstreamError(t, p, "timeout")
}

// An upstream that takes no more of a body has stopped, and not its client.
func TestUpstreamTakesNoBody(t *testing.T) {
	policy := strings.Replace(usage("response:status"), `"rps"`,
		`"status_costs": {"504": 0}, "rps"`, 1)
	p, _, _ := start(t, policy, nil, rawUpstream(t, func(rawConn) { <-t.Context().Done() }),
		func(c *Config) { c.Timeout = 50 * time.Millisecond })
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", rand.Reader)) // which never ends
	if w.Code != http.StatusGatewayTimeout {
		t.Error(w.Code)
	}
	wantLeft(t, p, 100)
}

// An answer that breaks off is counted, and the client notices it.
func TestUpstreamBreaksOff(t *testing.T) {
	p, url, _ := start(t, two, nil, rawUpstream(t, func(c rawConn) {
		_, _ = http.ReadRequest(c.Reader)
		_, _ = io.WriteString(c.Conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
	}))
	r, err := http.Get(url)
	if err == nil {
		_, err = io.ReadAll(r.Body)
		r.Body.Close()
	}
	if err == nil {
		t.Error("the client got a whole answer")
	}
	wantUpstreamError(t, p, "response")
}

// A request without an answer does not reach the upstream on all of the idle connections.
func TestFewRetries(t *testing.T) {
	var requests atomic.Int32
	var together, clients sync.WaitGroup
	together.Add(9)
	p, url, _ := start(t, "", func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/close" {
			requests.Add(1)
			panic(http.ErrAbortHandler)
		}
		together.Done()
		together.Wait()
	})
	for range 9 {
		clients.Go(func() { get(t, url) })
	}
	clients.Wait()
	if r, _ := get(t, url+"/close"); r.StatusCode != http.StatusBadGateway || requests.Load() > 3 {
		t.Error(r.Status, requests.Load())
	}
	wantUpstreamError(t, p, "response")
}

// Nor is a request that an upstream of HTTP/2 resets sent again and again. One with a body is sent
// again if the upstream has not begun with it, and the body is kept.
func TestFewRetriesOverHTTP2(t *testing.T) {
	const protocolError, refused = "\x01", "\x07"
	for _, tt := range []struct {
		method, body, code string // of the resets
		resets, requests   int32
		status             int
	}{
		{"GET", "", protocolError, 9, maxAttempts, http.StatusBadGateway}, // in Go 1.27, only once
		{"POST", "body", protocolError, 1, 1, http.StatusBadGateway},
		{"POST", "body", refused, maxAttempts - 1, maxAttempts, http.StatusOK},
		{"POST", "body", refused, 9, maxAttempts, http.StatusBadGateway},
		{"POST", strings.Repeat("x", maxKept+1), refused, 1, 1, http.StatusBadGateway},
	} {
		var requests atomic.Int32
		upstream := httptest.NewUnstartedServer(nil)
		upstream.TLS = &tls.Config{NextProtos: []string{"h2"}}
		upstream.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
			"h2": func(_ *http.Server, c *tls.Conn, _ http.Handler) {
				_, _ = io.WriteString(c, noSettings)
				_, _ = io.CopyN(io.Discard, c, int64(len(preface2)))
				body := ""
				for head := make([]byte, 9); ; {
					if _, err := io.ReadFull(c, head); err != nil {
						return
					}
					payload := make([]byte, binary.BigEndian.Uint32(head)>>8)
					_, _ = io.ReadFull(c, payload)
					kind, endsStream, stream := head[3], head[4]&1 != 0, string(head[5:])
					if kind == 0 {
						body += string(payload)
					}
					if kind > 1 || !endsStream {
						continue
					}
					answer := "\x00\x00\x01\x01\x05" + stream + "\x88" // status 200
					if requests.Add(1) <= tt.resets || body != tt.body {
						answer = "\x00\x00\x04\x03\x00" + stream + "\x00\x00\x00" + tt.code
					}
					_, _ = io.WriteString(c, answer)
					body = ""
				}
			},
		}
		p, front, _ := start(t, "", nil, over(t, upstream))
		r, _ := http.NewRequest(tt.method, front, strings.NewReader(tt.body))
		a, _ := testkit.Do(t, r)
		counts := strings.Contains(scrape(t, p), `tb_upstream_errors_total{reason="response"} 1`)
		wrong := requests.Load() != tt.requests && tt.body != "" || requests.Load() > tt.requests
		if a.StatusCode != tt.status || wrong ||
			counts != (tt.code == refused && tt.status != http.StatusOK) {
			t.Errorf("%s %.9s: %s, %d requests", tt.method, tt.body, a.Status, requests.Load())
		}
	}
}

// A connection of HTTP/2 may end before the stream of its request begins. net/http then closes the
// body, and uses it on the next connection.
func TestConnectionEndsBeforeTheStream(t *testing.T) {
	var conns sync.Map // of the upstream, by the address of the proxy
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	upstream.EnableHTTP2, upstream.Config.HTTP2 = true, &http.HTTP2Config{MaxConcurrentStreams: 1}
	upstream.Config.ConnState = func(c net.Conn, _ http.ConnState) {
		conns.Store(c.RemoteAddr().String(), c)
	}
	p, front, _ := start(t, "", nil, over(t, upstream))
	get(t, front)
	var once sync.Once
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		once.Do(func() {
			get(t, front) // on another connection
			c, _ := conns.Load(got.Conn.LocalAddr().String())
			c.(net.Conn).Close()
			for got.Conn.SetDeadline(time.Time{}) == nil { // until the transport has closed it
				runtime.Gosched()
			}
		})
	}}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body"))
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r.WithContext(httptrace.WithClientTrace(t.Context(), trace)))
	if w.Code != http.StatusOK || w.Body.String() != "body" {
		t.Error(w.Code, w.Body)
	}
}

func wantUpstreamError(t *testing.T, p *Proxy, reason string) {
	t.Helper()
	counts := regexp.MustCompile(`tb_upstream_errors_total.* [1-9].*`).FindAllString(scrape(t, p), -1)
	want := fmt.Sprintf("tb_upstream_errors_total{reason=%q} 1", reason)
	if len(counts) != 1 || counts[0] != want {
		t.Errorf("%q, want %s", counts, want)
	}
}
