package daemon

import (
	"context"
	"errors"
	"fmt"
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
)

// Server serves a handler on a listener until it is stopped.
type Server struct {
	http.Server
	Listener net.Listener
	cancel   context.CancelFunc // ends the contexts of all requests
}

// NewServer returns a server. Its log must be throttled.
func NewServer(l net.Listener, h http.Handler, log *slog.Logger) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	return &Server{
		Server: http.Server{
			Handler:           h,
			ReadHeaderTimeout: headerTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeader,
			BaseContext:       func(net.Listener) context.Context { return ctx },
			ErrorLog:          NewErrorLog(log),
			// The handler, with its log, answers OPTIONS * as other requests.
			DisableGeneralOptionsHandler: true,
		},
		Listener: l, cancel: cancel,
	}
}

// Start implements Stoppable.
func (s *Server) Start(failed chan<- error) {
	serve := s.Serve
	if s.TLSConfig != nil {
		serve = func(l net.Listener) error { return s.ServeTLS(l, "", "") }
	}
	go func() {
		err := serve(s.Listener)
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			failed <- err
		}
	}()
}

// Stop implements Stoppable. It closes the listener at once: a server whose clients need a delay is
// part of another Stoppable.
func (s *Server) Stop(_, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := s.Shutdown(ctx)
	s.cancel()
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// WarnOfAdmin logs if other machines reach the listener of --admin, which has this value.
func WarnOfAdmin(log *slog.Logger, l net.Listener, value string) {
	if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		log.Warn("every client that reaches this address can read the live page and the metrics, and"+
			" reset buckets", "flag", "--admin", "value", value)
	}
}

// Address returns the host and port at which this machine reaches a listener.
func Address(l net.Listener) string {
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok || !a.IP.IsUnspecified() {
		return l.Addr().String()
	}
	return fmt.Sprintf("localhost:%d", a.Port)
}
