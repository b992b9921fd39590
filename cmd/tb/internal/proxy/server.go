package proxy

import (
	"context"
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

func newServer(l net.Listener, h http.Handler, log *slog.Logger) *server {
	ctx, cancel := context.WithCancel(context.Background())
	return &server{
		Server: http.Server{
			Handler:           h,
			ReadHeaderTimeout: headerTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeader,
			BaseContext:       func(net.Listener) context.Context { return ctx },
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
		listener: l, cancel: cancel,
	}
}

// start serves in the background. It sends the error if serving ends before stop is called.
func (s *server) start(failed chan<- error) {
	go func() {
		if err := s.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
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
