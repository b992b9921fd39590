// Package proxy is `tb proxy`: a reverse proxy that limits requests by a policy.
package proxy

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
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
	Silent  bool        // no fields with requests that are granted

	Log      *slog.Logger
	Access   Access
	ShowKeys bool // in logs, instead of hashes of them

	Refused func(*http.Request, httplimit.Event) // the hook of the limiter; nil for none
}

// Proxy is the handler. It is safe for concurrent use.
type Proxy struct {
	Config
	Limiter *httplimit.Limiter
	Metrics *metrics.Metrics

	upstream httputil.ReverseProxy // without ModifyResponse, which is the request's own
	upgraded sync.WaitGroup        // requests that have taken over their connection

	// keys holds the key of each request that is to be logged, by *http.Request, from the
	// limiter's hook until Decide returns.
	keys sync.Map

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
	policy := c.Policy
	if policy == nil {
		policy = httplimit.Rules()
	}
	options := []httplimit.Option{
		httplimit.WithClientAddress(httplimit.ClientAddress{Trusted: c.Trusted}),
		httplimit.WithLimiterOptions(c.Core...),
		httplimit.WithHooks(p.hooks()),
	}
	if c.Silent {
		options = append(options, httplimit.WithSilentGrants())
	}
	var err error
	if p.Limiter, err = httplimit.New(policy, options...); err != nil {
		return nil, err
	}
	p.Metrics = metrics.New(p.Limiter)
	p.upstream = p.forward()
	return p, nil
}

// ServeHTTP passes a request on or refuses it.
//
// What belongs to the request is in its answer. In a context it would cost a copy of each
// request, and so would the decision if it came from Middleware.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w, proxy: p, start: time.Now()}
	if r.ContentLength != 0 {
		a.upload = &upload{ReadCloser: r.Body}
		r = r.WithContext(r.Context()) // a copy: net/http looks at what the Body of its own is
		r.Body = a.upload
	}
	dropListed(r.Header)
	defer a.end(r) // also if the upstream breaks off, which panics
	if a.decide(r) {
		upstream := p.upstream
		upstream.ModifyResponse = a.modify
		upstream.ServeHTTP(a, r)
	}
}

// hooks returns the hooks of the limiter. They note the keys of requests that are to be
// logged.
func (p *Proxy) hooks() httplimit.Hooks {
	h := httplimit.Hooks{Refused: p.Refused, Error: p.undecided}
	if p.Access == AccessAll {
		h.Granted = p.noteKey
	}
	if p.Access == AccessAll || p.Access == AccessRefused {
		h.Refused = func(r *http.Request, e httplimit.Event) {
			if p.Refused != nil {
				p.Refused(r, e)
			}
			p.noteKey(r, e)
		}
	}
	return h
}

func (p *Proxy) noteKey(r *http.Request, e httplimit.Event) { p.keys.Store(r, e.Key) }

func (p *Proxy) undecided(_ *http.Request, e httplimit.Event) {
	p.errors.Error("a limiter cannot decide", "rule", e.Rule, "error", e.Err)
}
