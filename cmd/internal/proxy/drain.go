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
// accepts the connections that are already there, and waits for their requests. Requests that wait
// for their tokens are served or refused early enough.
func (r *runner) drain(front *connections, failed <-chan error) (end time.Time) {
	r.proxy.closing.Store(true)
	r.stopWaiting(r.Delay)
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-failed: // there is nothing to wait for
		}
	}
	wait(r.Delay)
	listener := front.Listener.(*net.TCPListener)
	refuses := r.Delay > 0 && refuseNew(listener)
	if refuses {
		wait(handshakeTimeout)
	} else {
		_ = front.Close() // the next Accept reports the error
	}
	first := time.Now().Add(r.Delay)
	end = time.Now().Add(r.Shutdown)
	mayBeUsed := func(c *connection) bool { return c.mayBeUsed(time.Now(), first, r.Delay) }
	// While Accept returns a connection, it is neither queued nor open, so drain looks twice.
	for quiet := 0; quiet < 2 && time.Now().Before(end); quiet++ {
		if refuses && queued(listener) || front.has(mayBeUsed) {
			quiet = -1
		}
		time.Sleep(min(drainInterval, time.Until(end)))
	}
	return end
}

// mayBeUsed reports whether the client may send a request, or has sent one. first is the end of
// the time for a first request.
func (c *connection) mayBeUsed(now, first time.Time, delay time.Duration) bool {
	since := time.Unix(0, c.since.Load())
	switch http.ConnState(c.state.Load()) {
	case http.StateActive:
		return true
	case http.StateNew: // it may be one that a browser opened in advance
		return now.Before(first) || now.Before(since.Add(delay))
	case http.StateIdle: // a response that began earlier did not announce the end
		return now.Before(since.Add(delay))
	}
	return false
}
