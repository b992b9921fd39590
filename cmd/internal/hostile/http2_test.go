package hostile

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

// overHTTP2 returns a client that uses one connection with HTTP/2, without TLS.
func overHTTP2(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// frame returns a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload ...byte) []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = binary.BigEndian.AppendUint32(append(head, flags), stream)
	return append(head, payload...)
}

// A client that resets each stream at once gets no more past the limit than any other.
func TestStreamFlood(t *testing.T) {
	const (
		headers, reset, settings = 1, 3, 4
		endStreamAndHeaders      = 5
	)
	var served atomic.Int64
	p := start(t, upstream(t, func(http.ResponseWriter, *http.Request) { served.Add(1) }),
		policy(t, 5, `"ip:address"`), "--h2c")
	for range 20 {
		conn, err := net.Dial("tcp", p.proxy)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(deadline))
		text := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(settings, 0, 0)...)
		for stream := uint32(1); stream < 2000; stream += 2 {
			// GET http://h/ from the static table of HPACK, and CANCEL.
			text = append(text, frame(headers, endStreamAndHeaders, stream, 0x82, 0x86, 0x84, 0x41, 1,
				'h')...)
			text = append(text, frame(reset, 0, stream, 0, 0, 0, 8)...)
		}
		go io.Copy(io.Discard, conn)
		conn.Write(text) // the proxy may have closed the connection
		conn.Close()
	}
	await(t, "the flood to be counted", func() bool {
		return p.metric(t, `tb_requests_total{outcome="granted",rule="r",set=""}`) == 5
	})
	r, err := overHTTP2(t).Get("http://" + p.proxy)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusTooManyRequests || served.Load() > 5 {
		t.Errorf("%s, %d requests served", r.Status, served.Load())
	}
}

// Clients may use TLS, with HTTP/2 or without. A certificate is replaced when its file changes, and
// on SIGHUP.
func TestTLS(t *testing.T) {
	first, second := testkit.NewCertificate("127.0.0.1", nil), testkit.NewCertificate("127.0.0.1", nil)
	certFile, keyFile := testkit.File(t, "cert", first.PEM), testkit.File(t, "key", first.Key)
	p := start(t, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Header.Get("X-Forwarded-Proto"))
	}), "--tls-cert="+certFile, "--tls-key="+keyFile)
	get := func(http2 bool) *http.Response {
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			ForceAttemptHTTP2: http2, DisableKeepAlives: true,
		}}
		r, err := client.Get("https://" + p.proxy)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if body, err := io.ReadAll(r.Body); string(body) != "https" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
		return r
	}
	if r := get(true); r.ProtoMajor != 2 || !r.TLS.PeerCertificates[0].Equal(first.Certificate) {
		t.Error(r.Proto, r.TLS.PeerCertificates[0])
	}
	if r := get(false); r.ProtoMajor != 1 || r.Header["Ratelimit"] == nil {
		t.Error(r.Proto, r.Header)
	}
	err := errors.Join(os.WriteFile(certFile, []byte(second.PEM), 0o600),
		os.WriteFile(keyFile, []byte(second.Key), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	p.awaitLog(t, "certificate reloaded")
	if r := get(true); !r.TLS.PeerCertificates[0].Equal(second.Certificate) {
		t.Error("the old certificate")
	}
	if err := os.WriteFile(keyFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGHUP)
	p.awaitLog(t, "certificate rejected")
	if r := get(true); !r.TLS.PeerCertificates[0].Equal(second.Certificate) {
		t.Error("a broken certificate is in force")
	}
	p.stop(t)
}

// An early answer to a request with a body does not close the other streams of the connection.
func TestEarlyAnswerLeavesOtherStreamsAlone(t *testing.T) {
	p := start(t, rawUpstream(t, func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
	}), "--policy=off", "--h2c")
	connections := map[string]bool{}
	client := overHTTP2(t)
	transport := client.Transport.(*http.Transport)
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			connections[conn.LocalAddr().String()] = true
		}
		return conn, err
	}
	for range 5 {
		body, w := io.Pipe()
		r, err := client.Post("http://"+p.proxy, "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		w.Close()
	}
	if len(connections) != 1 {
		t.Errorf("%d connections, want 1", len(connections))
	}
}
