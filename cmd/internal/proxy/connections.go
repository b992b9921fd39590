package proxy

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connections is a listener that knows its open connections.
type connections struct {
	net.Listener
	open sync.Map // of *connection
}

// connection is a connection with its state. It has all methods of a TCPConn, because net/http
// and httputil use more than a net.Conn has.
type connection struct {
	*net.TCPConn
	listener *connections
	state    atomic.Int32 // an http.ConnState
	since    atomic.Int64 // when it was accepted or became idle, in nanoseconds since 1970
}

func (l *connections) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{TCPConn: conn.(*net.TCPConn), listener: l}
	c.since.Store(time.Now().UnixNano())
	l.open.Store(c, nil)
	return c, nil
}

func (l *connections) has(property func(*connection) bool) (found bool) {
	l.open.Range(func(c, _ any) bool {
		found = property(c.(*connection))
		return !found
	})
	return found
}

func (c *connection) Close() error {
	c.listener.open.Delete(c)
	return c.TCPConn.Close()
}

// setState is the ConnState of a server whose listener is a connections.
func setState(conn net.Conn, s http.ConnState) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if c, ok := conn.(*connection); ok {
		if s == http.StateIdle {
			c.since.Store(time.Now().UnixNano())
		}
		c.state.Store(int32(s))
	}
}
