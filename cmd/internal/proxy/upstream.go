package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/cmd/internal/metrics"
)

const (
	dialTimeout     = 10 * time.Second
	idleConns       = 1024        // kept open, so that a burst needs few handshakes
	continueTimeout = time.Second // until the upstream accepts a body that the client holds back
	maxAttempts     = 3           // of a request that the upstream does not take
	maxKept         = 16 << 10    // bytes of a body, for the next attempt
)

// statusClientGone is logged if the client closed the connection before the response, as in
// nginx, or if the proxy was stopped before.
const statusClientGone = 499

func (p *Proxy) newReverseProxy() httputil.ReverseProxy {
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext,
		// Bodies pass unchanged: a client that accepts compression asks for it itself.
		DisableCompression:    true,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          idleConns,
		MaxIdleConnsPerHost:   idleConns,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: p.Timeout,
		ExpectContinueTimeout: continueTimeout,
	}
	return httputil.ReverseProxy{
		Rewrite:      p.rewrite,
		Transport:    fewRetries{transport},
		ErrorHandler: p.upstreamFailed,
		BufferPool:   &buffers{sync.Pool{New: func() any { return new([32 << 10]byte) }}},
		ErrorLog:     daemon.NewErrorLog(p.errors),
	}
}

// fewRetries is a transport that bounds how often a request, which the limiter counts once, reaches
// the upstream. net/http sends one without a body again as long as the upstream closes a connection
// that served another request before, and without end what an upstream of HTTP/2 resets. The last
// attempt has a connection that was not idle before. fewRetries also gives up dead connections of
// HTTP/2, which are used until they fail.
type fewRetries struct{ *http.Transport }

func (t fewRetries) RoundTrip(r *http.Request) (*http.Response, error) {
	attempts := 0
	body, hasBody := r.Body.(*requestBody)
	ctx, end := context.WithCancel(r.Context())
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		switch attempts++; {
		case attempts == 2:
			t.CloseIdleConnections()
		case attempts > maxAttempts:
			end()
		}
		if hasBody && body.closed.Swap(false) { // by an attempt whose stream has not begun
			body.stalled.Reset(body.patience)
		}
		c, ok := got.Conn.(*tls.Conn)
		if ok && !got.Reused && c.ConnectionState().NegotiatedProtocol == "h2" {
			giveUpAfter(t.ResponseHeaderTimeout, c.NetConn())
		}
	}}
	r = r.WithContext(httptrace.WithClientTrace(ctx, trace))
	answer, err := t.Transport.RoundTrip(r)
	for isUntaken(err) && attempts < maxAttempts && ctx.Err() == nil && body.rewind() {
		answer, err = t.Transport.RoundTrip(r)
	}
	switch {
	case err == nil:
	case attempts == 0:
		err = fmt.Errorf("%w: %w", errUnsent, err)
	case attempts > maxAttempts:
		err = errNotTaken
	}
	return answer, err
}

// isUntaken reports whether an upstream of HTTP/2 has not begun with a request that has a body (RFC
// 9113, section 8.7). With a GetBody, net/http would send one again after a PROTOCOL_ERROR, too.
func isUntaken(err error) bool {
	return err != nil && !blamesClient(err) &&
		(strings.HasPrefix(err.Error(), "http2: Transport: cannot retry err") ||
			strings.HasPrefix(err.Error(), "net/http: cannot rewind body"))
}

// errUnsent is about a request that had no connection, for example because TLS has failed.
var errUnsent = errors.New("no connection")

// errNotTaken is about a request that the upstream has left unanswered, and that is not sent again.
// It also ends one whose body the client leaves open: HTTP/2 has its error after a Read of it.
var errNotTaken = errors.New("the upstream has closed the stream or connection without an answer")

func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.RawQuery = r.In.URL.RawQuery // or parameters with a ; were missing
	if r.Out.Body != nil {
		r.Out.Body = r.In.Body // or Go before 1.27 would hide its Close
	}
	r.SetURL(p.Upstream)
	if p.PreserveHost {
		r.Out.Host = r.In.Host
	}
	r.Out.Trailer = nil // it arrives after the decision, so the limiter has not seen it
	p.via.add(r.Out.Header, r.In)
	const chain = "X-Forwarded-For"          // of a trusted proxy: dropForged drops the others
	r.Out.Header[chain] = r.In.Header[chain] // SetXForwarded appends to it
	r.SetXForwarded()
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto", p.addressHeader} {
		if values := r.In.Header[name]; name != chain && len(values) > 0 {
			r.Out.Header[name] = values
		}
	}
}

// upstreamFailed answers a request that the upstream did not answer. Only what no client can cause
// counts as a failure of the upstream, for the metrics and for adaptive rules.
func (p *Proxy) upstreamFailed(w http.ResponseWriter, r *http.Request, err error) {
	rec := w.(*responseRecorder)
	if rec.upgraded { // the client is gone
		return
	}
	if cause := context.Cause(r.Context()); errors.Is(cause, errStalled) {
		err = cause // and not the end of the context
	} else if status := rec.clientFailure(r, err); status != 0 {
		rec.settlement.Abandon()
		http.Error(w, http.StatusText(status), status)
		return
	}
	reason, status, counts := metrics.Response, http.StatusBadGateway, true
	var op *net.OpError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errUnsent), errors.As(err, &op) && op.Op == "dial":
		reason, counts = metrics.Connect, !isExhausted(err)
		if counts && errors.Is(err, errUnsent) {
			rec.settlement.Cancel()
		}
	case errors.As(err, &timeout) && timeout.Timeout():
		reason, status = metrics.Timeout, http.StatusGatewayTimeout
	case rec.request.unread() || r.Header.Get("Upgrade") != "" || isLarge(r) || blamesClient(err):
		// An upstream may close the connection because a header is too long, or a body too long or too
		// slow. A WebSocket needs a connection of HTTP/1, which the upstream may not have.
		counts = false
	}
	if counts {
		p.Metrics.UpstreamError(reason)
	} else {
		rec.settlement.Abandon()
	}
	p.errors.Error("upstream", "method", r.Method, "path", r.URL.Path, "reason", string(reason),
		"error", err)
	http.Error(w, http.StatusText(status), status)
}

// clientFailure returns the status for a client whose request could not be sent, and 0 if the
// client has not failed.
func (rec *responseRecorder) clientFailure(r *http.Request, err error) int {
	switch {
	case rec.request != nil && rec.request.failed.Load() != 0:
		return int(rec.request.failed.Load())
	case errors.Is(context.Cause(r.Context()), errNotTaken): // err is why
		return 0
	case r.Context().Err() != nil, errors.Is(err, context.Canceled): // or the proxy stops
		return statusClientGone
	case strings.HasSuffix(err.Error(), "request header list larger than peer's advertised limit"):
		return http.StatusRequestHeaderFieldsTooLarge // an upstream of HTTP/2 states its limit
	}
	return 0
}

// isLarge reports whether the target and the fields of a request are more than some servers accept.
// They close the connection, with or without an answer. nginx accepts 4 KiB over HTTP/2 in older
// versions, and Node 128 fields.
func isLarge(r *http.Request) bool {
	bytes, fields := len(r.URL.RequestURI()), 0
	for name, values := range r.Header {
		for _, v := range values {
			bytes += len(name) + len(v)
		}
		fields += len(values)
	}
	return bytes >= 4<<10 || fields >= 100
}

// isExhausted reports whether the proxy has no file or no port left for a connection, for example
// because clients have many. An error of DNS has no type.
func isExhausted(err error) bool {
	text := err.Error()
	return strings.Contains(text, syscall.EMFILE.Error()) ||
		strings.Contains(text, syscall.EADDRNOTAVAIL.Error())
}

// blamesClient reports whether an upstream of HTTP/2 has ended a stream or a connection because it
// does not accept a request. The errors of net/http have no types.
func blamesClient(err error) bool {
	text := err.Error()
	return errors.Is(err, errNotTaken) || strings.Contains(text, "PROTOCOL_ERROR") ||
		strings.Contains(text, "COMPRESSION_ERROR")
}

// responseBody is the body of the upstream's response. It counts the bodies that break off, unless
// the client has left or has not sent all of its own body.
type responseBody struct {
	io.ReadCloser
	rec     *responseRecorder
	context context.Context // of the request
}

func (b *responseBody) Read(p []byte) (int, error) {
	b.rec.bound(false)
	n, err := b.ReadCloser.Read(p)
	b.rec.bound(true)
	if err != nil && !errors.Is(err, io.EOF) && b.context.Err() == nil && !b.rec.request.unread() {
		b.rec.proxy.Metrics.UpstreamError(metrics.Response)
	}
	return n, err
}

// Close ends the request, whose body the client may leave open. A transport of HTTP/2 would wait
// for a Read of it, and the end of the answer with it.
func (b *responseBody) Close() error {
	if b.rec.request.unread() {
		b.rec.request.end(nil)
	}
	return b.ReadCloser.Close()
}

type buffers struct{ sync.Pool }

func (b *buffers) Get() []byte { return b.Pool.Get().(*[32 << 10]byte)[:] }

func (b *buffers) Put(buffer []byte) { b.Pool.Put((*[32 << 10]byte)(buffer)) }
