package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	stuckTimeout  = time.Minute     // between two looks at what clients take
	minTaken      = 32 << 10        // bytes in between, if more wait for them
	streamTimeout = 5 * time.Minute // for a piece in one of the streams that share a slow line
)

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

	writes     atomic.Int64 // the calls of Write that have begun, and those that have ended
	writesSeen int64        // by closeStuck, as takenSeen
	takenSeen  uint64
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

func (l *connections) mayBeUsed(first time.Time, delay time.Duration) (found bool) {
	l.open.Range(func(c, _ any) bool {
		found = c.(*connection).mayBeUsed(time.Now(), first, delay)
		return !found
	})
	return found
}

// closeStuck looks at what clients take. It closes a connection if the Write of the last look is
// still under way, and the client has taken less than minTaken since.
func (l *connections) closeStuck() {
	l.open.Range(func(key, _ any) bool {
		c := key.(*connection)
		if writes := c.writes.Load(); writes%2 != 0 {
			taken := bytesTaken(c.TCPConn)
			if writes == c.writesSeen && taken-c.takenSeen < minTaken {
				_ = c.SetLinger(0) // or the kernel would keep what the client does not take
				_ = c.Close()
			}
			c.writesSeen, c.takenSeen = writes, taken
		}
		return true
	})
}

// Write implements net.Conn. It waits as long as the client takes nothing.
func (c *connection) Write(p []byte) (int, error) {
	c.writes.Add(1)
	defer c.writes.Add(1)
	return c.TCPConn.Write(p)
}

// ReadFrom hides the method of TCPConn, which would not call Write for a WebSocket.
func (c *connection) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c}, r)
}

func (c *connection) Close() error {
	c.listener.open.Delete(c)
	return c.TCPConn.Close()
}

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
