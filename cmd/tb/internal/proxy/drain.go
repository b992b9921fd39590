package proxy

import (
	"net"
	"net/http"
	"time"
)

const (
	// handshakeTimeout is how long a client that has begun to connect may take to finish.
	handshakeTimeout = 100 * time.Millisecond
	drainInterval    = 5 * time.Millisecond // between looks at the connections
)

// drain takes the clients off the proxy so that they lose no request, and returns the end of the
// time that requests may still take.
//
// http.Server.Shutdown alone loses requests: it resets the connections that are not accepted yet,
// closes connections on which a request may be on its way, and drops the requests that it reads
// from then on. So drain first announces with each response that the connection closes. Then it
// accepts the connections that are already there, and waits for their requests.
func (r *runner) drain(front *connections, failed <-chan error) (end time.Time) {
	r.proxy.closing.Store(true)
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-failed: // there is nothing to wait for
		}
	}
	wait(r.Delay)
	if r.Delay > 0 && refuseNew(front.Listener.(*net.TCPListener)) {
		wait(handshakeTimeout)
	}
	_ = front.Close() // the next Accept reports the error
	first := time.Now().Add(r.Delay)
	end = time.Now().Add(r.Shutdown)
	for now := time.Now(); now.Before(end); now = time.Now() {
		// A connection without a request may be one that a browser opened in advance.
		if !front.has(http.StateActive) && (now.After(first) || !front.has(http.StateNew)) {
			break
		}
		time.Sleep(min(drainInterval, time.Until(end)))
	}
	return end
}
