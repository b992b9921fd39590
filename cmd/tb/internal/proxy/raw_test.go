package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// client is a connection to a server, to write what no http.Client would.
type client struct {
	net.Conn
	*bufio.Reader
}

func (c client) Read(p []byte) (int, error) { return c.Reader.Read(p) }

// connect opens a connection and writes some text.
func connect(t *testing.T, url, text string) client {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := client{conn, bufio.NewReader(conn)}
	c.send(t, text)
	return c
}

// send writes a text, with the ends of lines that HTTP has.
func (c client) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c.Conn, strings.ReplaceAll(text, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
}

// response reads a response to a request of some method, without its body.
func (c client) response(t *testing.T, method string) *http.Response {
	t.Helper()
	r, err := http.ReadResponse(c.Reader, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// raw sets the upstream to one that has each connection to itself.
func raw(t *testing.T, serve func(client)) func(*Config) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(client{conn, bufio.NewReader(conn)})
			}()
		}
	}()
	return func(c *Config) { c.Upstream = &url.URL{Scheme: "http", Host: l.Addr().String()} }
}
