package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Connections to clients. A whole request or response may take any time, because both may be
// streams. ReadTimeout and WriteTimeout would end them.
const (
	headerTimeout = 10 * time.Second // from the connection, or the first bytes of a later request
	idleTimeout   = 2 * time.Minute  // between requests
	maxHeader     = 64 << 10

	// upgradedTimeout is how long handlers of upgraded connections may take to return after
	// the connections are closed.
	upgradedTimeout = time.Second
)

// server serves a handler on a listener until it is stopped.
type server struct {
	http.Server
	listener net.Listener
	cancel   context.CancelFunc // ends the contexts of all requests
}

// newServer returns a server. Its log must be throttled.
func newServer(l net.Listener, h http.Handler, log *slog.Logger) *server {
	ctx, cancel := context.WithCancel(context.Background())
	return &server{
		Server: http.Server{
			Handler:           logPanics(h, log),
			ReadHeaderTimeout: headerTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeader,
			BaseContext:       func(net.Listener) context.Context { return ctx },
			ErrorLog:          newErrorLog(log),
		},
		listener: l, cancel: cancel,
	}
}

// configure sets the protocols and timeouts of the flags, for a listener that is a connections.
// The certificate may be nil.
func (s *server) configure(f clientFlags, c *certificate) {
	s.ReadHeaderTimeout = f.HeaderTimeout
	s.ConnState = setState
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(f.H2C && c == nil)
	if c != nil {
		s.Protocols.SetHTTP2(true)
		s.TLSConfig = &tls.Config{GetCertificate: c.get}
	}
}

// start serves in the background. It sends the error if serving ends before stop is called.
func (s *server) start(failed chan<- error) {
	go func() {
		err := s.serve()
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			failed <- err
		}
	}()
}

func (s *server) serve() error {
	if s.TLSConfig != nil {
		return s.ServeTLS(s.listener, "", "")
	}
	return s.Serve(s.listener)
}

// stop closes the listener, waits up to grace for the requests under way, and cuts off the
// rest. It returns an error if it cut off any.
func (s *server) stop(grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := s.Shutdown(ctx)
	s.cancel()
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// waitUpgraded waits for the requests that have taken over their connection, such as
// WebSockets. http.Server does not wait for them; the end of their contexts closes them.
func (p *Proxy) waitUpgraded() {
	done := make(chan struct{})
	go func() {
		p.upgraded.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(upgradedTimeout):
	}
}

// isLoopback reports whether only this machine reaches a listener.
func isLoopback(l net.Listener) bool {
	a, ok := l.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}
