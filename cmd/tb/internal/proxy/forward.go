package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/metrics"
)

// Of connections to the upstream.
const (
	dialTimeout = 10 * time.Second
	idleConns   = 1024 // kept open, so that a burst does not begin with as many handshakes

	// continueTimeout is how long a body is held back, if the client wants that, for the
	// upstream to say whether it wants the body.
	continueTimeout = time.Second
)

// statusClientGone is logged for requests whose client did not wait, as nginx does.
const statusClientGone = 499

// forward returns what passes requests on to the upstream.
func (p *Proxy) forward() httputil.ReverseProxy {
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext,
		// Bodies pass as they are: what the client accepts, it asks for itself.
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
		Transport:    transport,
		ErrorHandler: p.failed,
		BufferPool:   &buffers{},
		ErrorLog:     slog.NewLogLogger(p.errors.Handler(), slog.LevelWarn),
	}
}

// rewrite makes the request to the upstream of the one that came in. Who the client is, is
// believed only of a trusted proxy; from anybody else such fields are dropped.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(p.Upstream)
	if p.PreserveHost {
		r.Out.Host = r.In.Host
	}
	r.Out.Trailer = nil // what follows a body has been looked at by nobody
	onlyWebSocket(r.Out.Header)
	trusted := p.Limiter.TrustsPeer(r.In)
	for name := range r.Out.Header {
		// Many upstreams take _ for -. No proxy writes it, so it is the client's own.
		if forwarded(name) && (!trusted || strings.Contains(name, "_")) {
			delete(r.Out.Header, name)
		}
	}
	if !trusted {
		r.SetXForwarded()
		return
	}
	const chain = "X-Forwarded-For"
	r.Out.Header[chain] = r.In.Header[chain] // SetXForwarded appends to it
	r.SetXForwarded()
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values := r.In.Header[name]; len(values) > 0 {
			r.Out.Header[name] = values
		}
	}
}

// body counts answers that break off.
type body struct {
	io.ReadCloser
	proxy *Proxy
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
		b.proxy.Metrics.UpstreamError(metrics.Response)
	}
	return n, err
}

// failed answers a request that the upstream did not.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) { // the client is gone, or the proxy is closed
		w.WriteHeader(statusClientGone)
		return
	}
	if a, ok := w.(*answer); ok && a.upload.brokeOff() {
		http.Error(w, http.StatusText(http.StatusBadRequest), http.StatusBadRequest)
		return
	}
	reason, status := metrics.Response, http.StatusBadGateway
	var op *net.OpError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		reason = metrics.Connect
	case errors.As(err, &timeout) && timeout.Timeout():
		reason, status = metrics.Timeout, http.StatusGatewayTimeout
	}
	p.Metrics.UpstreamError(reason)
	p.errors.Error("upstream", "method", r.Method, "path", r.URL.Path, "reason", string(reason),
		"error", err)
	http.Error(w, http.StatusText(status), status)
}

// buffers are for copying bodies.
type buffers struct{ pool sync.Pool }

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if buffer, ok := b.pool.Get().(*[32 << 10]byte); ok {
		return buffer[:]
	}
	return make([]byte, 32<<10)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(buffer []byte) { b.pool.Put((*[32 << 10]byte)(buffer)) }
