package proxy

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/internal/clientaddr"
)

// connections is a listener that knows its open connections. It closes the connections of a
// network that has too many. Connections of trusted proxies are not counted.
type connections struct {
	net.Listener
	most    int // of a network; 0 for no bound
	rules   clientaddr.Rules
	refused func(network netip.Addr)

	mu        sync.Mutex
	open      map[*connection]struct{}
	ofNetwork map[netip.Addr]int
}

func newConnections(l net.Listener, most int, rules clientaddr.Rules,
	refused func(netip.Addr)) *connections {
	return &connections{
		Listener: l, most: most, rules: rules, refused: refused,
		open: map[*connection]struct{}{}, ofNetwork: map[netip.Addr]int{},
	}
}

// connection is a connection with its state. It has all methods of a TCPConn, because net/http
// and httputil use more than a net.Conn has.
type connection struct {
	*net.TCPConn
	state   atomic.Int32 // an http.ConnState
	since   atomic.Int64 // when it was accepted or became idle, in nanoseconds since 1970
	counted bool
	network netip.Addr
	remove  func()
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &connection{TCPConn: conn.(*net.TCPConn)}
		c.remove = sync.OnceFunc(func() { l.remove(c) })
		c.network, c.counted = l.networkOf(conn.RemoteAddr())
		c.since.Store(time.Now().UnixNano())
		if l.add(c) {
			return c, nil
		}
		_ = conn.Close() // nothing was written
		l.refused(c.network)
	}
}

// networkOf returns the network of a peer, as the limiter has it for a request, and reports whether
// its connections are counted.
func (l *connections) networkOf(peer net.Addr) (network netip.Addr, counted bool) {
	a, ok := clientaddr.Parse(peer.String())
	return l.rules.Network(l.rules.Behind(a, nil)), ok && l.most > 0 && !l.rules.Trusts(a)
}

// add adds a connection, and reports false if its network has too many.
func (l *connections) add(c *connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.counted {
		if l.ofNetwork[c.network] >= l.most {
			return false
		}
		l.ofNetwork[c.network]++
	}
	l.open[c] = struct{}{}
	return true
}

func (l *connections) remove(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	if !c.counted {
		return
	}
	if l.ofNetwork[c.network]--; l.ofNetwork[c.network] == 0 {
		delete(l.ofNetwork, c.network)
	}
}

// has reports whether a connection has a property.
func (l *connections) has(property func(*connection) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if property(c) {
			return true
		}
	}
	return false
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.remove()
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
