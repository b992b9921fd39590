package proxy

import (
	"crypto/tls"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"golang.org/x/sys/unix"
)

// A connection of HTTP/2 to an upstream that is gone fails, so that another one is made. One of
// HTTP/1 has a single request, and may be a WebSocket whose upstream makes a long pause.
func TestUpstreamMustAcknowledge(t *testing.T) {
	for http2, want := range map[bool]int{false: 0, true: math.MaxInt32} { // milliseconds
		upstream := httptest.NewUnstartedServer(http.NotFoundHandler())
		upstream.EnableHTTP2 = http2
		p, _, _ := start(t, "", nil, over(t, upstream), func(c *Config) { c.Timeout = math.MaxInt64 })
		trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
			raw, _ := got.Conn.(*tls.Conn).NetConn().(*net.TCPConn).SyscallConn()
			_ = raw.Control(func(fd uintptr) {
				ms, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
				if ms != want || err != nil {
					t.Error(ms, err)
				}
			})
		}}
		ctx := httptrace.WithClientTrace(t.Context(), trace)
		p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
	}
}
