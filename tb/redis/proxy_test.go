package redis

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy passes TCP connections to a target, and its replies through a function that a test chooses.
type proxy struct {
	addr string

	mu      sync.Mutex
	target  string
	replies func(w io.Writer, b []byte) error // an error closes the connection
	conns   map[net.Conn]bool                 // nil when the proxy is closed
	wg      sync.WaitGroup
}

func startProxy(t testing.TB, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		addr: listener.Addr().String(), target: target, replies: deliver, conns: make(map[net.Conn]bool),
	}
	p.wg.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for c := range p.conns {
			_ = c.Close()
		}
		p.conns = nil
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

// keep closes a connection at the latest with the proxy.
func (p *proxy) keep(c net.Conn) (forget func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		_ = c.Close()
	} else {
		p.conns[c] = true
	}
	return func() {
		_ = c.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, c)
	}
}

func (p *proxy) serve(client net.Conn) {
	defer p.keep(client)()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer p.keep(server)()
	p.wg.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	b := make([]byte, 64<<10)
	for {
		n, err := server.Read(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		replies := p.replies
		p.mu.Unlock()
		if err := replies(client, b[:n]); errors.Is(err, errDropped) {
			_, _ = io.Copy(io.Discard, server)
			return
		} else if err != nil {
			return
		}
	}
}

func (p *proxy) set(replies func(io.Writer, []byte) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replies = replies
}

// move sends the connections that come next to another target.
func (p *proxy) move(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

func deliver(w io.Writer, b []byte) error {
	_, err := w.Write(b)
	return err
}

// cut delivers half of the replies, and closes the connection.
func cut(w io.Writer, b []byte) error {
	_, _ = w.Write(b[:len(b)/2])
	return errors.New("cut")
}

// delay delivers replies late, by at least d.
func delay(d time.Duration) func(io.Writer, []byte) error {
	return func(w io.Writer, b []byte) error {
		<-time.After(d)
		return deliver(w, b)
	}
}

// distant delivers each reply a round trip late, in their order.
func distant(trip time.Duration) func(io.Writer, []byte) error {
	type reply struct {
		w    io.Writer
		text []byte
	}
	var mu sync.Mutex
	var replies []reply
	return func(w io.Writer, text []byte) error {
		mu.Lock()
		defer mu.Unlock()
		replies = append(replies, reply{w, bytes.Clone(text)})
		time.AfterFunc(trip, func() {
			mu.Lock()
			defer mu.Unlock()
			_ = deliver(replies[0].w, replies[0].text) // the client may have left
			replies = replies[1:]
		})
		return nil
	}
}

var errDropped = errors.New("dropped")

// drop delivers nothing. The connection stays open, and delivers nothing later either, because TCP
// does not lose a part of a stream.
func drop(io.Writer, []byte) error { return errDropped }
