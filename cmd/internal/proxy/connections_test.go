package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
)

// A client that reads slowly gets its answer. One that reads no more is cut off, by a task of the
// process. The clock of the test stands still while a goroutine waits for a socket.
func TestClientsMustRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not say what a client has taken")
	}
	clients := listen(t)
	client := connect(t, clients.Addr().String(), "")
	_ = client.Conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	server, err := clients.Accept()
	if err != nil {
		t.Fatal(err)
	}
	const more = 8 << 20 // than the kernel holds
	written := make(chan error, 1)
	go func() { // in one Write
		_, err := server.(*connection).ReadFrom(bytes.NewReader(make([]byte, 10*more)))
		written <- err
	}()
	synctest.Test(t, func(t *testing.T) {
		p, log := inMemory(t, two, nil)
		r := &runner{Command: new(Command), proxy: p, proxyListener: clients, clients: clients,
			Process: &daemon.Process{Log: log.Logger(), Stdout: io.Discard}}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- r.serve(ctx) }()
		for range 3 {
			time.Sleep(stuckTimeout)
			if _, err := io.CopyN(io.Discard, client, more); err != nil {
				t.Error(err)
			}
		}
		for len(written) == 0 {
			time.Sleep(stuckTimeout)
		}
		stop()
		<-served
	})
	if _, err := io.Copy(io.Discard, client); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v, and Write: %v", err, <-written)
	}
}

type hourly bool

func (h *hourly) Read(p []byte) (int, error) {
	if *h = !*h; *h {
		return 1, nil
	}
	time.Sleep(time.Hour)
	return len(p), nil
}

// pipes is a listener that accepts these connections, in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (pipes) Close() error { return nil }

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A client of HTTP/2 must take each stream, also an answer of the proxy. An upstream may be quiet
// in the middle of an answer.
func TestStreamsMustBeRead(t *testing.T) {
	const window = "\x00\x00\x06\x04\x00\x00\x00\x00\x00" + "\x00\x04\x00\x00\x00\x02" // two bytes
	for method, want := range map[string]time.Duration{
		"GET": time.Hour + streamTimeout, "TRACE": streamTimeout,
	} {
		synctest.Test(t, func(t *testing.T) {
			p, _ := inMemory(t, two, func(r *http.Request) (*http.Response, error) {
				body := io.NopCloser(new(hourly))
				return &http.Response{StatusCode: http.StatusOK, Body: body, Request: r}, nil
			})
			client, conn := net.Pipe()
			clients := make(pipes, 1)
			clients <- conn
			close(clients)
			server := &http.Server{Handler: p, Protocols: new(http.Protocols)}
			server.Protocols.SetUnencryptedHTTP2(true)
			_ = server.Serve(clients)
			defer server.Close()
			begin := time.Now()
			request := over2(method, "h", "/")
			go io.WriteString(client, strings.Replace(request, noSettings, window, 1))
			for c := (rawConn{client, bufio.NewReader(client)}); status(t, c, true) != "reset"; {
			}
			if got := time.Since(begin); got != want {
				t.Errorf("%s is reset after %v", method, got)
			}
		})
	}
}
