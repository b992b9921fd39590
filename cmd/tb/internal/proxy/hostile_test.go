package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// An upstream may answer while the client has not sent everything, and never will.
func TestEarlyAnswer(t *testing.T) {
	_, url, _ := start(t, two, nil, raw(t, func(c client) {
		if _, err := http.ReadRequest(c.Reader); err == nil {
			_, _ = io.WriteString(c.Conn, "HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno")
			_, _ = io.Copy(io.Discard, c)
		}
	}))
	c := connect(t, url, "POST / HTTP/1.1\nHost: h\nContent-Length: 1000\n\nonly this")
	r := c.response(t, "POST")
	body, err := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusRequestEntityTooLarge || string(body) != "no" || err != nil ||
		!r.Close {
		t.Errorf("%v, %q, %v", r, body, err)
	}
}

// An upstream may answer piece by piece while it gets a request piece by piece.
func TestBothDirectionsAtOnce(t *testing.T) {
	_, url, _ := start(t, two, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := control.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		_ = control.Flush()
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			fmt.Fprintln(w, lines.Text())
			_ = control.Flush()
		}
	})
	body, w := io.Pipe()
	r, err := http.Post(url, "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	for i := range 3 {
		fmt.Fprintln(w, i)
		if !lines.Scan() || lines.Text() != fmt.Sprint(i) {
			t.Fatalf("got %q, %v, want %d", lines.Text(), lines.Err(), i)
		}
	}
	w.Close()
	if lines.Scan() || lines.Err() != nil {
		t.Error(lines.Text(), lines.Err())
	}
}

// What is wrong with a request's body is no error of the upstream.
func TestBrokenRequests(t *testing.T) {
	p, url, _ := start(t, "", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	})
	c := connect(t, url, "POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\nno number\n")
	if r := c.response(t, "POST"); r.StatusCode != http.StatusBadRequest || !r.Close {
		t.Error(r)
	}
	c = connect(t, url, "POST / HTTP/1.1\nHost: h\nContent-Length: 1000\n\nhalf")
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	// It may be seen first by who reads the body, or by who notices that the client is gone.
	if r := c.response(t, "POST"); r.StatusCode != http.StatusBadRequest &&
		r.StatusCode != statusClientGone || !r.Close {
		t.Error(r)
	}
	if metrics := scrape(t, p); !strings.Contains(metrics,
		`tb_upstream_errors_total{reason="response"} 0`) {
		t.Error(metrics)
	}
}

func TestUpstreamHangs(t *testing.T) {
	hang := make(chan struct{})
	p, url, _ := start(t, two, func(http.ResponseWriter, *http.Request) { <-hang },
		func(c *Config) { c.Timeout = time.Millisecond })
	defer close(hang)
	if r, _ := get(t, url); r.StatusCode != http.StatusGatewayTimeout {
		t.Error(r.Status)
	}
	if !strings.Contains(scrape(t, p), `tb_upstream_errors_total{reason="timeout"} 1`) {
		t.Error(scrape(t, p))
	}
}

func TestUpstreamResets(t *testing.T) {
	p, url, _ := start(t, two, nil, raw(t, func(c client) {
		_, _ = http.ReadRequest(c.Reader)
		_ = c.Conn.(*net.TCPConn).SetLinger(0)
	}))
	if r, _ := get(t, url); r.StatusCode != http.StatusBadGateway {
		t.Error(r.Status)
	}
	if !strings.Contains(scrape(t, p), `tb_upstream_errors_total{reason="response"} 1`) {
		t.Error(scrape(t, p))
	}
}

// net/http looks at the Body of the request that it made, to know whether the client holds
// it back and how much of it is to come. Another in its place would make it wait for both.
func TestRequestKeepsItsBody(t *testing.T) {
	p, _, _ := start(t, two, func(http.ResponseWriter, *http.Request) {})
	for range 3 { // two are granted and one is refused
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("hello"))
		body := r.Body
		p.ServeHTTP(httptest.NewRecorder(), r)
		if r.Body != body {
			t.Errorf("it is a %T", r.Body)
		}
	}
}

// A body is sent when the upstream wants it, and not if the request is refused.
func TestExpectContinue(t *testing.T) {
	_, url, _ := start(t, two, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	post := func(path string) client {
		return connect(t, url, "POST "+path+" HTTP/1.1\nHost: h\nContent-Length: 5\n"+
			"Expect: 100-continue\n\n")
	}
	c := post("/yes")
	if r := c.response(t, "POST"); r.StatusCode != http.StatusContinue || len(r.Header) > 0 {
		t.Fatal(r)
	}
	c.send(t, "hello")
	r := c.response(t, "POST")
	if body, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusOK || string(body) != "hello" ||
		r.Header.Get("RateLimit-Remaining") != "1" {
		t.Error(r, string(body))
	}
	if r := post("/no").response(t, "POST"); r.StatusCode != http.StatusForbidden || !r.Close {
		t.Error(r)
	}
	if r := post("/yes").response(t, "POST"); r.StatusCode != http.StatusTooManyRequests ||
		!r.Close {
		t.Error(r)
	}
}

func TestHTTP10(t *testing.T) {
	_, url, _ := start(t, two, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush() // so the length is not known
		fmt.Fprint(w, "hello")
	})
	c := connect(t, url, "GET / HTTP/1.0\n\n")
	r := c.response(t, "GET")
	body, err := io.ReadAll(r.Body)
	if string(body) != "hello" || err != nil || len(r.TransferEncoding) > 0 ||
		r.Header.Get("RateLimit-Remaining") != "1" {
		t.Errorf("%v, %q, %v", r, body, err)
	}
}

// Trailers of responses pass. Those of requests, which no limiter and nobody else has looked
// at, do not, and so they are not announced.
func TestTrailers(t *testing.T) {
	_, url, _ := start(t, two, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Told")
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("Told", "announced")
		w.Header().Set(http.TrailerPrefix+"Untold", fmt.Sprint(r.Trailer))
	})
	c := connect(t, url, "POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\nTrailer: X\n\n"+
		"2\nhi\n0\nX: 1\nX-Forwarded-For: 192.0.2.9\n\n")
	r := c.response(t, "POST")
	body, err := io.ReadAll(r.Body)
	if string(body) != "hi" || err != nil || r.Trailer.Get("Told") != "announced" ||
		r.Trailer.Get("Untold") != "map[]" {
		t.Errorf("%v, %q, %v", r, body, err)
	}
}

// What a client lists in Connection is not passed on, so it must not choose a bucket either.
func TestConnectionChoosesNoBucket(t *testing.T) {
	const policy = `{"evaluation": "first_match", "rules": [
		{"name": "key", "limit_keys": ["header:x-api-key"],
		 "algorithm_config": {"tokens_per_second": 0.1, "burst": 9}},
		{"name": "address", "limit_keys": ["ip:address"],
		 "algorithm_config": {"tokens_per_second": 0.1, "burst": 1}}]}`
	_, url, _ := start(t, policy, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Values("X-Api-Key"))
	})
	for i, want := range []int{200, 429} {
		r, body := get(t, url, "X-Api-Key", fmt.Sprint(i), "Connection", "x, x-api-KEY ,y")
		if r.StatusCode != want || want == 200 && body != "[]" {
			t.Errorf("%d: %s, %s", i, r.Status, body)
		}
	}
	if r, body := get(t, url, "X-Api-Key", "k"); r.StatusCode != http.StatusOK || body != "[k]" {
		t.Errorf("%s, %s", r.Status, body)
	}
}

// Who the client is cannot be hidden by listing it.
func TestConnectionHidesNoAddress(t *testing.T) {
	_, url, _ := start(t, two, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Forwarded-For"))
	}, func(c *Config) { c.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} })
	for _, address := range []string{"192.0.2.1", "192.0.2.2"} {
		r, body := get(t, url, "X-Forwarded-For", address, "Connection", "X-Forwarded-For, TE",
			"TE", "trailers")
		if r.Header.Get("RateLimit-Remaining") != "1" || body != address+", 127.0.0.1" {
			t.Errorf("%s, %v, %s", address, r.Header, body)
		}
	}
}

// Behind an upgrade to HTTP/2 there would be any number of requests.
func TestNoOtherUpgradeThanWebSocket(t *testing.T) {
	_, url, _ := start(t, two, nil, raw(t, func(c client) {
		r, err := http.ReadRequest(c.Reader)
		if err != nil {
			return
		}
		text := fmt.Sprint(r.Header["Upgrade"], r.Header["Connection"], r.Header["Http2-Settings"])
		fmt.Fprintf(c.Conn, "HTTP/1.1 101 OK\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nX: %s\r\n\r\n",
			text)
		_, _ = io.Copy(io.Discard, c)
	}))
	c := connect(t, url, "GET / HTTP/1.1\nHost: h\nConnection: Upgrade, HTTP2-Settings\n"+
		"Upgrade: h2c\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\n\n")
	if r := c.response(t, "GET"); r.StatusCode != http.StatusBadGateway {
		t.Error(r)
	}
	_, url, _ = start(t, two, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header["Upgrade"], r.Header["Connection"], r.Header["Http2-Settings"])
	})
	_, body := get(t, url, "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c",
		"HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA")
	if body != "[] [] []" {
		t.Error(body)
	}
}

// A refused client that never sends its body gets its answer, and the connection is closed.
// One that has sent it may go on.
func TestRefusedRequestsWithBodies(t *testing.T) {
	_, url, _ := start(t, two, func(http.ResponseWriter, *http.Request) {})
	for range 2 {
		get(t, url)
	}
	c := connect(t, url, "POST / HTTP/1.1\nHost: h\nContent-Length: 5\n\nhello")
	r := c.response(t, "POST")
	_, _ = io.Copy(io.Discard, r.Body)
	if r.StatusCode != http.StatusTooManyRequests || r.Close {
		t.Error(r)
	}
	c.send(t, "POST / HTTP/1.1\nHost: h\nContent-Length: 1000\n\nhalf")
	r = c.response(t, "POST")
	_, _ = io.Copy(io.Discard, r.Body)
	if r.StatusCode != http.StatusTooManyRequests || !r.Close {
		t.Error(r)
	}
	if _, err := c.ReadByte(); err == nil {
		t.Error("the connection is open")
	}
}
