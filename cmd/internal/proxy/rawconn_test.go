package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// rawConn is a connection on which a test writes requests that http.Client cannot send.
type rawConn struct {
	net.Conn
	*bufio.Reader
}

func (c rawConn) Read(p []byte) (int, error) { return c.Reader.Read(p) }

func connect(t *testing.T, url, text string) rawConn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := rawConn{conn, bufio.NewReader(conn)}
	c.send(t, text)
	return c
}

// send writes a text, with the ends of lines that HTTP has.
func (c rawConn) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c.Conn, strings.ReplaceAll(text, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
}

// response reads the header of the response to a request with this method.
func (c rawConn) response(t *testing.T, method string) *http.Response {
	t.Helper()
	r, err := http.ReadResponse(c.Reader, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rawUpstream sets the upstream to a server that calls serve with each connection.
func rawUpstream(t *testing.T, serve func(rawConn)) func(*Config) {
	t.Helper()
	address := testkit.Serve(t, func(conn net.Conn) {
		serve(rawConn{conn, bufio.NewReader(conn)})
	})
	return to("http://" + address)
}
