package proxy

import (
	"net"
	"net/url"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A connection of HTTP/2 to an upstream that is gone fails, so that another one is made.
func TestUpstreamMustAcknowledge(t *testing.T) {
	upstream := listen(t).Addr().String()
	p, _, _ := start(t, "", nil, func(c *Config) {
		c.Upstream, c.Timeout = &url.URL{Scheme: "https", Host: upstream}, time.Minute
	})
	conn, err := p.upstream.Transport.(fewRetries).DialContext(t.Context(), "tcp", upstream)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, _ := conn.(*net.TCPConn).SyscallConn()
	_ = raw.Control(func(fd uintptr) {
		ms, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		if ms != 60_000 || err != nil {
			t.Error(ms, err)
		}
	})
}
