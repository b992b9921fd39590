package httplimit

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
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

// bare is a ResponseWriter without optional methods.
type bare struct{ http.ResponseWriter }

// wrapping is a ResponseWriter with optional methods for http.ResponseController only.
type wrapping struct{ bare }

// errorFlusher has the method of http.ResponseController alone.
type errorFlusher interface{ FlushError() error }

func (w wrapping) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Whatever methods a writer has, the writer of a Settlement has no others, except Flush and ReadFrom
// beside Hijack.
func TestOptionalMethodsOfWriters(t *testing.T) {
	s := newSite(t, reporting("response:bytes", ""))
	b := bare{httptest.NewRecorder()}
	for i, c := range []struct {
		w    http.ResponseWriter
		want string // flush, hijack and read
	}{
		{b, "false false false"},
		{wrapping{b}, "true false false"},
		{struct {
			bare
			errorFlusher
		}{bare: b}, "true false false"},
		{struct {
			bare
			http.Flusher
			io.ReaderFrom
		}{bare: b}, "true false false"},
		{struct {
			bare
			http.Hijacker
		}{bare: b}, "true true true"},
	} {
		_, settlement, _ := s.Admit(b, request())
		w := settlement.Writer(c.w)
		_, flush := w.(http.Flusher)
		_, hijack := w.(http.Hijacker)
		_, read := w.(io.ReaderFrom)
		if got := sprint(flush, hijack, read); got != c.want {
			t.Errorf("writer %d: %s, want %s", i, got, c.want)
		}
		settlement.Cancel()
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
