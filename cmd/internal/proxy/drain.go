package proxy

import (
	"net"
	"net/http"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
)

const (
	handshakeTimeout = 100 * time.Millisecond // for a client that has begun to connect
	drainInterval    = 5 * time.Millisecond   // between looks at the connections
	cutOffTimeout    = 5 * time.Second        // for handlers whose connections are closed
)

type frontServer struct {
	*daemon.Server
	proxy       *Proxy
	connections *connections
}

// Stop implements daemon.Stoppable. The requests that still wait for their tokens when half of the
// grace is over are refused. The upstream has the other half.
func (s *frontServer) Stop(delay, grace time.Duration) error {
	s.proxy.Limiter.StopWaiting(time.Now().Add(delay + grace/2))
	err := s.Server.Stop(0, time.Until(s.drain(delay, grace)))
	s.proxy.waitCutOff()
	return err
}

// drain takes the clients off the proxy so that they lose no request, and returns the end of the
// time that requests may still take.
//
// http.Server.Shutdown alone loses requests: it resets the connections that are not accepted yet,
// closes connections on which a request may be on its way, and drops the requests that it reads
// from then on. So drain first announces with each response that the connection closes. Then it
// accepts the connections that are already there, and waits for their requests. Requests that wait
// for their tokens are served or refused early enough.
func (s *frontServer) drain(delay, grace time.Duration) (end time.Time) {
	s.proxy.closing.Store(true)
	time.Sleep(delay)
	listener := s.connections.Listener.(*net.TCPListener)
	refuses := delay > 0 && refuseNew(listener)
	if refuses {
		time.Sleep(handshakeTimeout)
	} else {
		_ = s.connections.Close() // the next Accept reports the error
	}
	first := time.Now().Add(delay)
	end = time.Now().Add(grace)
	// While Accept returns a connection, it is neither queued nor open, so drain looks twice.
	for quiet := 0; quiet < 2 && time.Now().Before(end); quiet++ {
		if refuses && queued(listener) || s.connections.mayBeUsed(first, delay) {
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

// configure sets the protocols and timeouts of the flags, for a listener that is a connections.
// The certificate may be nil.
func configure(s *daemon.Server, f clientFlags, c *daemon.Security) {
	s.ReadHeaderTimeout = f.HeaderTimeout
	s.ConnState = setState
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(f.H2C && c == nil)
	if c != nil {
		s.Protocols.SetHTTP2(true)
		s.TLSConfig = c.ServerConfig()
	}
}

// waitCutOff waits for the requests that are cut off, so that the state and the log have them, and
// those that have taken over their connection, such as WebSockets. http.Server does not wait for
// them; the end of their contexts ends them.
func (p *Proxy) waitCutOff() {
	end := time.Now().Add(cutOffTimeout)
	for p.requests.Load() > 0 && time.Now().Before(end) {
		time.Sleep(drainInterval)
	}
}
