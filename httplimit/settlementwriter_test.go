package httplimit

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
)

// served is a server of a site. Each handler that has ended sends to ended.
type served struct {
	*site
	url       string
	protocols *http.Protocols
	ended     chan struct{}
	hints     http.Header // of the last informational response
}

// serveSite serves f behind a limiter over real connections of HTTP/1 or HTTP/2.
func serveSite(t *testing.T, policy string, http2 bool, f http.HandlerFunc) *served {
	s := &served{site: newSite(t, policy), ended: make(chan struct{}, 1)}
	h := s.Middleware(f)
	server := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			defer func() { s.ended <- struct{}{} }()
			h.ServeHTTP(w, r)
		}))
	s.protocols = new(http.Protocols)
	s.protocols.SetHTTP1(!http2)
	s.protocols.SetUnencryptedHTTP2(http2)
	server.Config.Protocols = s.protocols
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// fetch returns the response with its body read, after the handler has ended.
func (s *served) fetch(lines ...string) (*http.Response, string) {
	s.t.Helper()
	transport := &http.Transport{Protocols: s.protocols}
	defer transport.CloseIdleConnections()
	r := request(lines...)
	r.RequestURI = ""
	r.URL, _ = url.Parse(s.url)
	trace := &httptrace.ClientTrace{
		Got1xxResponse: func(_ int, header textproto.MIMEHeader) error {
			s.hints = http.Header(header)
			return nil
		},
	}
	resp, err := transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	<-s.ended
	return resp, string(body)
}

func bothProtocols(t *testing.T, f func(t *testing.T, http2 bool)) {
	t.Run("HTTP/1", func(t *testing.T) { f(t, false) })
	t.Run("HTTP/2", func(t *testing.T) { f(t, true) })
}

// The writer has the same optional methods as the writer of net/http.
func TestWriterKeepsOptionalMethods(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		plain, measured := "", ""
		for text, policy := range map[*string]string{
			&plain: jsonRule("r", "[]", 5, ""), &measured: reporting("response:bytes", ""),
		} {
			s := serveSite(t, policy, http2, func(w http.ResponseWriter, _ *http.Request) {
				_, flush := w.(http.Flusher)
				_, flushError := w.(interface{ FlushError() error })
				_, hijack := w.(http.Hijacker)
				_, read := w.(io.ReaderFrom)
				_, push := w.(http.Pusher)
				_, writeString := w.(io.StringWriter)
				control := http.NewResponseController(w)
				*text = sprint(flush, flushError, hijack, read, push, writeString,
					control.EnableFullDuplex() == nil, control.Flush() == nil)
			})
			s.fetch()
		}
		if plain != measured {
			t.Errorf("%s, want %s", measured, plain)
		}
	})
}

// bare is a ResponseWriter without optional methods.
type bare struct{ http.ResponseWriter }

// wrapping is a ResponseWriter with optional methods for http.ResponseController only.
type wrapping struct{ bare }

func (w wrapping) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestWriterAddsNoOptionalMethods(t *testing.T) {
	s := newSite(t, reporting("response:bytes", ""))
	_, settlement, _ := s.Admit(httptest.NewRecorder(), request())
	defer settlement.Finish()
	w := settlement.Writer(bare{httptest.NewRecorder()})
	if _, ok := w.(http.Flusher); ok {
		t.Error("a writer without Flush has it")
	}
	if err := http.NewResponseController(w).Flush(); err == nil {
		t.Error("a writer without Flush flushes")
	}
	if _, ok := w.(http.Hijacker); ok {
		t.Error("a writer without Hijack has it")
	}
	recorder := httptest.NewRecorder()
	w = settlement.Writer(wrapping{bare{recorder}})
	if err := http.NewResponseController(w).Flush(); err != nil || !recorder.Flushed {
		t.Error(err)
	}
}

// errorFlusher is a ResponseWriter with the method of http.ResponseController alone.
type errorFlusher struct {
	bare
	flushed http.Header
}

func (f *errorFlusher) FlushError() error {
	f.flushed = f.Header().Clone()
	return nil
}

// A flush reads the header, and hides its fields, also of a writer that has only FlushError.
func TestFlushErrorReadsTheHeader(t *testing.T) {
	s := newSite(t, reporting("response:header:x-usage", `, "hide_cost_header": true`))
	f := &errorFlusher{bare: bare{httptest.NewRecorder()}}
	_, settlement, _ := s.Admit(f, request())
	w := settlement.Writer(f)
	w.Header().Set("X-Usage", "30")
	if err := http.NewResponseController(w).Flush(); err != nil || f.flushed == nil {
		t.Errorf("no flush: %v", err)
	}
	settlement.Finish()
	if len(f.flushed["X-Usage"]) > 0 || s.left() != 70 {
		t.Errorf("the header is %v, %v left, want 70", f.flushed, s.left())
	}
}

// A second status, as http.Error writes it after a part of the body, changes no trailer.
func TestASecondStatusKeepsTheTrailers(t *testing.T) {
	s := newSite(t, reporting("response:header:x-usage", ""))
	s.answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Usage")
		io.WriteString(w, "body")
		w.Header().Set("X-Usage", "30")
		http.Error(w, "broken", http.StatusInternalServerError)
	})
	if got := s.get().Result().Trailer.Get("X-Usage"); got != "30" || s.left() != 70 {
		t.Errorf("the trailer is %q, %v left, want 70", got, s.left())
	}
}

// Whatever methods a writer has, the writer of a Settlement has no others, except Flush beside
// Hijack.
func TestOptionalMethodsOfWriters(t *testing.T) {
	s := newSite(t, reporting("response:bytes", ""))
	b := bare{httptest.NewRecorder()}
	for i, c := range []struct {
		w    http.ResponseWriter
		want string // flush, hijack, push and read
	}{
		{b, "false false false false"},
		{struct {
			bare
			io.ReaderFrom
		}{bare: b}, "false false false false"},
		{struct {
			bare
			http.Pusher
		}{bare: b}, "false false false false"},
		{struct {
			bare
			http.Flusher
		}{bare: b}, "true false false false"},
		{struct {
			bare
			http.Flusher
			io.ReaderFrom
		}{bare: b}, "true false false false"},
		{struct {
			bare
			http.Flusher
			http.Pusher
		}{bare: b}, "true false true false"},
		{struct {
			bare
			http.Hijacker
			io.ReaderFrom
		}{bare: b}, "true true false false"},
		{struct {
			bare
			http.Flusher
			http.Hijacker
		}{bare: b}, "true true false false"},
		{struct {
			bare
			http.Flusher
			http.Hijacker
			io.ReaderFrom
		}{bare: b}, "true true false true"},
	} {
		_, settlement, _ := s.Admit(b, request())
		w := settlement.Writer(c.w)
		_, flush := w.(http.Flusher)
		_, hijack := w.(http.Hijacker)
		_, push := w.(http.Pusher)
		_, read := w.(io.ReaderFrom)
		if got := sprint(flush, hijack, push, read); got != c.want {
			t.Errorf("writer %d: %s, want %s", i, got, c.want)
		}
		settlement.Cancel()
	}
}

// The cost is in the header of the final response, and not in an informational one.
func TestCostBesideInformationalResponses(t *testing.T) {
	for _, status := range []int{http.StatusContinue, http.StatusEarlyHints, 199} {
		s := newSite(t, reporting("response:header:x-usage", ""))
		s.answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Usage", "50")
			w.WriteHeader(status)
			w.Header().Set("X-Usage", "30")
		})
		s.get()
		if s.left() != 70 {
			t.Errorf("status %d: %v left, want 70", status, s.left())
		}
	}
}

// A body that io.Copy and http.ServeContent send counts like one of Write.
func TestBytesOfReadFrom(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		s := serveSite(t, reporting("response:bytes", ""), http2,
			func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, "1")
				io.WriteString(w, "2")
				io.Copy(w, struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 40))})
			})
		if _, body := s.fetch(); len(body) != 42 || s.left() != 58 {
			t.Errorf("%d bytes, %v left", len(body), s.left())
		}
	})
}

// A client that hangs up pays for the bytes until then, and the estimate if the cost is in a field
// that was not written.
func TestClientThatHangsUp(t *testing.T) {
	for source, want := range map[string]float64{
		"response:bytes": 70, "response:header:x-usage": 90,
	} {
		sent := make(chan struct{})
		s := serveSite(t, reporting(source, ""), false,
			func(w http.ResponseWriter, r *http.Request) {
				w.Write(make([]byte, 30))
				w.(http.Flusher).Flush()
				close(sent)
				<-r.Context().Done()
			})
		ctx, cancel := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		<-sent
		cancel()
		resp.Body.Close()
		<-s.ended
		if s.left() != want {
			t.Errorf("%s: %v left, want %v", source, s.left(), want)
		}
	}
}

// A connection that is hijacked keeps the estimate, whatever is sent on it.
func TestHijackKeepsTheEstimate(t *testing.T) {
	for _, source := range []string{"response:bytes", "response:header:x-usage"} {
		s := serveSite(t, reporting(source, ""), false,
			func(w http.ResponseWriter, _ *http.Request) {
				conn, buffer, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				io.WriteString(buffer, "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n"+
					strings.Repeat("x", 40))
				buffer.Flush()
			})
		if _, body := s.fetch(); len(body) != 40 || s.left() != 90 {
			t.Errorf("%s: %d bytes, %v left", source, len(body), s.left())
		}
		s.settled(0, 1)
	}
}

// Behind Middleware, the cost of an upgrade that a ReverseProxy passes on is in its header.
func TestUpgradeOfAReverseProxy(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffer, _ := w.(http.Hijacker).Hijack()
		defer conn.Close()
		io.WriteString(buffer, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"+
			"Upgrade: echo\r\nX-Usage: 25\r\n\r\nhello")
		buffer.Flush()
	}))
	defer upstream.Close()
	target, _ := url.Parse(upstream.URL)
	s := serveSite(t, reporting("response:header:x-usage", ""), false,
		httputil.NewSingleHostReverseProxy(target).ServeHTTP)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	answer := bufio.NewReader(conn)
	r, err := http.ReadResponse(answer, nil)
	if err != nil || r.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(r, err)
	}
	if rest, _ := io.ReadAll(answer); string(rest) != "hello" {
		t.Errorf("%q", rest)
	}
	conn.Close()
	<-s.ended
	if s.left() != 75 {
		t.Errorf("%v left", s.left())
	}
}
