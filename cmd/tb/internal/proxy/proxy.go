// Package proxy is `tb proxy`: a reverse proxy that limits requests by a policy.
package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/metrics"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Config says what a Proxy does. Upstream and Log are needed.
type Config struct {
	Upstream     *url.URL
	PreserveHost bool          // pass the Host of the request on, instead of the upstream's
	Timeout      time.Duration // until the upstream begins to answer; 0 for no limit

	// Policy is what is limited. nil passes everything, with no limiter in between.
	Policy  *httplimit.Policy
	Trusted []netip.Prefix
	Core    []tb.Option // of the limiters

	Log      *slog.Logger
	Access   Access
	ShowKeys bool // in logs, instead of hashes of them

	// Refused, if it is not nil, is told of refused requests as httplimit.Hooks are.
	Refused func(*http.Request, httplimit.Event)
}

// Proxy is the handler. It is safe for concurrent use.
type Proxy struct {
	Config
	Limiter *httplimit.Limiter
	Metrics *metrics.Metrics

	handler  http.Handler   // the limiter, with the upstream behind it
	upgraded sync.WaitGroup // requests that have taken over their connection

	// What clients can cause again and again is throttled; a flood of the one must not
	// hide the other.
	refusals *throttle
	errors   *slog.Logger
}

// New returns a proxy.
func New(c Config) (*Proxy, error) {
	p := &Proxy{
		Config: c, refusals: newThrottle(),
		errors: slog.New(throttled{c.Log.Handler(), newThrottle()}),
	}
	hooks := httplimit.Hooks{Refused: p.refused, Error: p.undecided}
	if c.Access == AccessAll {
		hooks.Granted = p.decided
	}
	policy := c.Policy
	if policy == nil {
		policy = httplimit.Rules()
	}
	var err error
	p.Limiter, err = httplimit.New(policy,
		httplimit.WithClientAddress(httplimit.ClientAddress{Trusted: c.Trusted}),
		httplimit.WithCore(c.Core...), httplimit.WithHooks(hooks))
	if err != nil {
		return nil, err
	}
	p.Metrics = metrics.New(p.Limiter)
	p.handler = p.forward()
	if c.Policy != nil {
		p.handler = p.Limiter.Middleware(p.granted(p.handler))
	}
	return p, nil
}

// ServeHTTP passes a request on or refuses it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w, proxy: p, start: time.Now()}
	// The hooks find the answer by the context.
	r = r.WithContext(context.WithValue(r.Context(), answerKey{}, a))
	if r.ContentLength != 0 {
		a.upload = &upload{ReadCloser: r.Body}
		r.Body = a.upload
	}
	dropListed(r.Header)
	defer a.end(r) // also if the upstream breaks off, which panics
	p.handler.ServeHTTP(a, r)
}

// granted returns a handler that is called when a request has been granted.
func (p *Proxy) granted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a, ok := w.(*answer); ok {
			a.decided()
			a.ours = len(a.Header()) > 0
		}
		next.ServeHTTP(w, r)
	})
}

// refused and decided are hooks of the limiter.
func (p *Proxy) refused(r *http.Request, e httplimit.Event) {
	p.decided(r, e)
	if a, ok := r.Context().Value(answerKey{}).(*answer); ok {
		a.linger()
	}
	if p.Refused != nil {
		p.Refused(r, e)
	}
}

func (p *Proxy) decided(r *http.Request, e httplimit.Event) {
	if a, ok := r.Context().Value(answerKey{}).(*answer); ok {
		a.event, a.limited = e, true
	}
}

func (p *Proxy) undecided(_ *http.Request, e httplimit.Event) {
	p.errors.Error("a limiter cannot decide", "rule", e.Rule, "error", e.Err)
}

type answerKey struct{}
