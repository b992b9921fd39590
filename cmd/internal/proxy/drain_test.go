package proxy

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"time"
)

// A proxy without processor time accepts late. The connections that have reached the kernel are
// still served.
func TestDrainServesLateAccepts(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system resets the connections")
	}
	front := listen(t)
	conn := connect(t, front.Addr().String(), "GET / HTTP/1.1\nHost: h\nConnection: close\n\n")

	p, _, _ := start(t, "", func(http.ResponseWriter, *http.Request) {})
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		(&frontServer{proxy: p, connections: front}).drain(time.Millisecond, time.Minute)
	}()
	select {
	case <-drained:
		t.Error("the proxy stops before it has accepted a connection")
	case <-time.After(5 * handshakeTimeout):
	}
	server := &http.Server{Handler: p, ConnState: setState}
	go server.Serve(front)
	defer server.Shutdown(context.Background())
	if n, err := conn.Read(make([]byte, 1)); n != 1 {
		t.Error(err)
	}
	<-drained
}

// A response that began before the stop did not announce that its connection closes. So the client
// may send its next request for as long as the delay.
func TestIdleConnectionsMayBeUsed(t *testing.T) {
	start := time.Now()
	const delay = time.Second
	for _, tt := range []struct {
		state      http.ConnState
		since, now time.Duration
		want       bool
	}{
		{http.StateActive, 0, time.Hour, true},
		{http.StateNew, 0, delay - 1, true},
		{http.StateNew, 0, delay, false},
		{http.StateNew, delay, 2*delay - 1, true},
		{http.StateIdle, 0, delay - 1, true},
		{http.StateIdle, 0, delay, false},
		{http.StateIdle, time.Minute, time.Minute + delay - 1, true},
		{http.StateClosed, 0, 0, false},
		{http.StateHijacked, 0, 0, false},
	} {
		var c connection
		c.state.Store(int32(tt.state))
		c.since.Store(start.Add(tt.since).UnixNano())
		if got := c.mayBeUsed(start.Add(tt.now), start.Add(delay), delay); got != tt.want {
			t.Errorf("%v since %v, at %v: %v", tt.state, tt.since, tt.now, got)
		}
	}
}
