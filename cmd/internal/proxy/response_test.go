package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/seed-181794aa/ratelimit/cmd/internal/testkit"
)

func sendRateLimit(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("RateLimit-Remaining", "99")
	w.Header().Set("X-RateLimit-Limit", "99")
	w.Header().Set("RateLimit", `"theirs";r=99;t=1`)
}

// The limiter's fields replace the upstream's fields of the same name. Items in lists stay.
func TestFieldsOfTheUpstream(t *testing.T) {
	_, url, _ := start(t, two, sendRateLimit)
	r, _ := get(t, url)
	h := r.Header
	all := strings.Join(h.Values("RateLimit"), ", ")
	if len(h.Values("RateLimit-Remaining")) != 1 || h.Get("RateLimit-Remaining") != "1" ||
		h.Get("X-RateLimit-Limit") != "" || all != `"two";r=1;t=10, "theirs";r=99;t=1` {
		t.Error(h)
	}
}

// If the limiter sends fields with refusals only, the upstream's fields stay, also in hints.
func TestSilentGrants(t *testing.T) {
	_, url, _ := start(t, two, func(w http.ResponseWriter, r *http.Request) {
		sendRateLimit(w, r)
		w.WriteHeader(http.StatusEarlyHints)
	}, func(c *Config) { c.Fields.OnlyRefused = true })
	var hint string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
			hint = h.Get("RateLimit-Remaining")
			return nil
		},
	})
	for range 2 {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		r, _ := testkit.Do(t, req)
		if hint != "99" {
			t.Errorf("the hint has %q", hint)
		}
		h := r.Header
		if r.StatusCode != http.StatusOK || h.Get("RateLimit-Limit") != "" ||
			h.Get("RateLimit-Remaining") != "99" || h.Get("X-RateLimit-Limit") != "99" ||
			fmt.Sprint(h.Values("RateLimit")) != `["theirs";r=99;t=1]` {
			t.Error(r.Status, h)
		}
	}
	r, _ := get(t, url)
	if h := r.Header; r.StatusCode != http.StatusTooManyRequests ||
		h.Get("RateLimit-Limit") != "2" || h.Get("RateLimit-Remaining") != "0" {
		t.Error(r.Status, h)
	}
}

// An informational response, such as 103, does not have the limiter's fields. The final one
// has them.
func TestFieldsSurviveInformationalResponses(t *testing.T) {
	_, url, _ := start(t, two, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.Header().Set("RateLimit-Remaining", "99") // belongs to the hint
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.WriteHeader(http.StatusTeapot)
	})
	r, _ := get(t, url)
	if r.StatusCode != http.StatusTeapot || r.Header.Get("Link") != "" ||
		fmt.Sprint(r.Header.Values("RateLimit-Remaining")) != "[1]" ||
		fmt.Sprint(r.Header.Values("RateLimit")) != `["two";r=1;t=10]` {
		t.Error(r.Status, r.Header)
	}
}

// An upstream may answer before the client has sent the whole body, which may never come. It may
// also leave out the type of its answer.
func TestEarlyAnswer(t *testing.T) {
	_, url, _ := start(t, two, nil, rawUpstream(t, func(c rawConn) {
		if _, err := http.ReadRequest(c.Reader); err == nil {
			_, _ = io.WriteString(c.Conn, "HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno")
			_, _ = io.Copy(io.Discard, c)
		}
	}))
	c := connect(t, url, "POST / HTTP/1.1\nHost: h\nContent-Length: 1000\n\nonly this")
	r := c.response(t, "POST")
	body, err := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusRequestEntityTooLarge || string(body) != "no" || err != nil ||
		!r.Close || r.Header["Content-Type"] != nil {
		t.Errorf("%v, %q, %v", r, body, err)
	}
}

// The client sends its body when the upstream accepts it, and not if the request is refused.
func TestExpectContinue(t *testing.T) {
	_, url, _ := start(t, two, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	post := func(path string) rawConn {
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

// A refused client that never sends its body gets the answer, and the connection is closed.
// If it has sent the body, the connection can be reused.
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
		t.Error("the connection is still open")
	}
}

// A client of HTTP/1.0 gets no informational response.
func TestHTTP10(t *testing.T) {
	_, url, _ := start(t, two, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		_ = http.NewResponseController(w).Flush() // so that the length is not known
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

// Trailers of responses pass. Trailers of requests do not, because the limiter has not seen
// them, and they are not announced.
func TestTrailers(t *testing.T) {
	_, url, _ := start(t, two, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Announced")
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("Announced", "yes")
		w.Header().Set(http.TrailerPrefix+"Unannounced", fmt.Sprint(r.Trailer))
	})
	c := connect(t, url, "POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\nTrailer: X\n\n"+
		"2\nhi\n0\nX: 1\nX-Forwarded-For: 192.0.2.9\n\n")
	r := c.response(t, "POST")
	body, err := io.ReadAll(r.Body)
	if string(body) != "hi" || err != nil || r.Trailer.Get("Announced") != "yes" ||
		r.Trailer.Get("Unannounced") != "map[]" {
		t.Errorf("%v, %q, %v", r, body, err)
	}
}

// The flags about fields reach the responses, also after an informational response.
func TestResponseFlags(t *testing.T) {
	name := file(t, two)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Limit", "99")
		w.WriteHeader(http.StatusEarlyHints)
	}))
	defer upstream.Close()
	jitters := map[string]bool{}
	for _, secret := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		r := run(t, func(c *Command) {
			c.PolicyField, c.XRateLimit, c.ReasonField = true, true, "X-Why"
			c.Policy, c.SharedSecret = name, secret
			_ = c.Upstream.UnmarshalText([]byte(upstream.URL))
		})
		granted, _ := get(t, r.proxy)
		get(t, r.proxy)
		refused, _ := get(t, r.proxy)
		jitters[refused.Header.Get("Retry-After")] = true
		if h := granted.Header; h.Get("RateLimit-Policy") != `"two";q=2;w=20` ||
			fmt.Sprint(h["X-Ratelimit-Limit"], h["X-Ratelimit-Remaining"]) != "[2] [1]" ||
			refused.Header.Get("X-Why") == "" {
			t.Error(h, refused.Header)
		}
	}
	if len(jitters) < 2 {
		t.Error("the secret changes nothing")
	}
}
