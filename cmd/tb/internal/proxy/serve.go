package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Of connections to clients. There is no limit to how long a request or a response may
// take as a whole, because both may be streams: ReadTimeout and WriteTimeout would end them.
const (
	headerTimeout = 10 * time.Second // from the first byte to the last of the header
	idleTimeout   = 2 * time.Minute  // between requests
	maxHeader     = 64 << 10
)

// closing is how long connections that were taken over get to notice that they are closed.
const closing = time.Second

// server serves a handler on a listener, until it is shut down.
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

// start serves in the background and sends why it ended, if nobody asked for that.
func (s *server) start(failed chan<- error) {
	go func() {
		if err := s.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
}

// stop closes the listener, lets requests that are being served end in the time given, and
// cuts off the others. It returns an error if there are any.
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

// drain waits for the requests that have taken over their connection, WebSockets that is.
// Nobody else does; the end of their contexts closes them.
func (p *Proxy) drain() {
	done := make(chan struct{})
	go func() {
		p.upgraded.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(closing):
	}
}
