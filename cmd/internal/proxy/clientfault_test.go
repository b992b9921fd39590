package proxy

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// adaptive is a policy whose rate falls from 500 a second if the upstream fails.
const adaptive = `{"name": "r", "limit_keys": [], "algorithm_config": {"rps": 500, "burst": 10,
	"adaptive": {"min": 20, "max": 2000, "target_p99": "200ms"}}}`

const (
	preface2   = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	noSettings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
)

// over2 is a request of HTTP/2 with a method, host and path, and then names and values of fields.
func over2(method, host, path string, fields ...string) string {
	block := ""
	fields = append([]string{":method", method, ":authority", host, ":path", path, ":scheme", "http"},
		fields...)
	for i, text := range fields {
		if i%2 == 0 {
			block += "\x00" // a literal of HPACK
		}
		block += string([]byte{byte(len(text))}) + text
	}
	const endStreamAndHeaders = 5
	head := []byte{0, 0, byte(len(block)), 1, endStreamAndHeaders, 0, 0, 0, 1}
	return preface2 + noSettings + string(head) + block
}

// status reads the status of the first response on a connection. In HTTP/2 it may be "reset".
func status(t *testing.T, c rawConn, isHTTP2 bool) string {
	t.Helper()
	read := func(n uint32) []byte {
		b := make([]byte, n)
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	if !isHTTP2 {
		return string(read(uint32(len("HTTP/1.1 400")))[len("HTTP/1.1 "):])
	}
	for {
		head := read(9)
		payload := read(binary.BigEndian.Uint32(head) >> 8)
		switch head[3] {
		case 1:
			return map[byte]string{0x8c: "400"}[payload[0]] // from the static table of HPACK
		case 3:
			return "reset"
		}
	}
}

// attack sends a request again and again, and the rest after the status of the response. It checks
// the status, and that nothing counts as a failure of the upstream.
func attack(t *testing.T, upstream http.HandlerFunc, request, rest, want string,
	change ...func(*Config)) {
	t.Helper()
	p, url, now := start(t, adaptive, upstream, change...)
	isHTTP2 := strings.HasPrefix(request, preface2)
	for range 60 {
		now.Advance(50 * time.Millisecond)
		c := connect(t, url, "")
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if !isHTTP2 {
			request = strings.ReplaceAll(strings.ReplaceAll(request, "\r", ""), "\n", "\r\n")
		}
		go func() { _, _ = io.WriteString(c.Conn, request) }()
		if got := status(t, c, isHTTP2); got != want {
			t.Fatalf("%.200q: %s, want %s", request, got, want)
		}
		if rest != "" {
			_, _ = io.WriteString(c.Conn, rest)
			_ = c.Conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
		}
		c.Close()
	}
	if rate := rateOf(p); rate != 500 {
		t.Errorf("%.200q: the rate is %v", request, rate)
	}
	for line := range strings.Lines(scrape(t, p)) {
		if strings.HasPrefix(line, "tb_upstream_errors_total") && !strings.HasSuffix(line, " 0\n") {
			t.Errorf("%.200q: %s", request, line)
		}
	}
}

func rateOf(p *Proxy) float64 {
	l := p.Limiter.Stats()[0].Limit
	return float64(l.Tokens) / l.Per.Seconds()
}

// Whatever a client sends is not a failure of the upstream, and lowers no adaptive rate. The
// requests are what the checks of the transports of net/http reject, and of its servers.
func TestNoRequestIsAFailureOfTheUpstream(t *testing.T) {
	for _, c := range []struct{ request, want string }{
		{over2("GET /x", "h.test", "/"), "400"},
		{over2("G\u00c9T", "h.test", "/"), "400"},
		{over2("", "h.test", "/"), "reset"},
		{over2("GET", "h.test/v1", "/"), "400"},
		{over2("GET", "xn--\u00fc.test", "/"), "400"},
		{over2("GET", "h.test\\", "/"), "400"},
		{over2("GET", "", "/", "host", "h.test/v1"), "400"},
		{over2("GET", "[fe80::1%25x]", "/"), "400"},
		{over2("GET", "u@h.test", "/"), "reset"},
		{over2("GET", "h.test", "/?a b"), "400"},
		{over2("GET", "h.test", "x"), "reset"},
		{over2("GET", "h.test", "/\x7f"), "reset"},
		{over2("GET", "h.test", "/", "x", "a\nb"), "reset"},
		{over2("GET", "h.test", "/", "x y", "a"), "reset"},
		{over2("GET", "h.test", "/", "upgrade", "websocket"), "400"},
		{over2("CONNECT", "h.test", "/", ":protocol", "websocket"), "reset"},
		{"GET /?a#b HTTP/1.1\nHost: h\n\n", "400"},
		{"GET /?a" + strings.Repeat("&", 10_000) + " HTTP/1.1\nHost: h\n\n", "400"},
		{"GET http://xn--\u00fc/ HTTP/1.1\nHost: h\n\n", "400"},
		{"GET / HTTP/1.1\nHost: h\nConnection: Upgrade\nUpgrade: \u00fc\n\n", "404"},
		{"POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\nTrailer: X Y\n\n0\nX: a\n\n", "404"},
		{"POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\nx\n", "400"},
	} {
		attack(t, http.NotFound, c.request, "", c.want)
	}
}

// A body may end early, after the upstream has begun to answer. An upstream may close the
// connection because it does not want a body or a WebSocket.
func TestNoBodyIsAFailureOfTheUpstream(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		_ = control.Flush()
		_, _ = io.Copy(w, r.Body)
	}
	attack(t, echo, "POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n1\na\n", "x\r\n", "200")
	attack(t, echo, "POST / HTTP/1.1\nHost: h\nContent-Length: 9\n\nx", "y", "200")
	refuse := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	long := "Content-Length: 99999999\n\n" + strings.Repeat("x", 32<<20)
	attack(t, refuse, "POST / HTTP/1.1\nHost: h\n"+long, "", "502")
	attack(t, refuse, "GET / HTTP/1.0\nConnection: Upgrade\nUpgrade: websocket\n\n", "", "502")
}

// An upstream of HTTP/2 states how long the header of a request may be. Others close the
// connection.
func TestNoLongHeaderIsAFailureOfTheUpstream(t *testing.T) {
	refuse := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	attack(t, refuse, "GET / HTTP/1.1\nHost: h\nX: "+strings.Repeat("x", 5000)+"\n\n", "", "502")
	attack(t, refuse, "GET /"+strings.Repeat("x", 5000)+" HTTP/1.1\nHost: h\n\n", "", "502")
	attack(t, refuse, "GET / HTTP/1.1\nHost: h\n"+strings.Repeat("A: b\n", 130)+"\n", "", "502")
	upstream := httptest.NewUnstartedServer(http.NotFoundHandler())
	upstream.EnableHTTP2, upstream.Config.MaxHeaderBytes = true, 10_000
	fields := strings.Repeat("X: "+strings.Repeat("x", 1000)+"\n", 20)
	attack(t, nil, "GET / HTTP/1.1\nHost: h\n"+fields+"\n", "", "431", over(t, upstream))
}
