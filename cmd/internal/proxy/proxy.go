// Package proxy implements `tb-proxy`: a reverse proxy that limits requests by a policy.
//
// A request passes proxy.go, request.go, upstream.go, response.go and access.go in this order.
// command.go, run.go, reload.go and drain.go start, reload and stop the proxy.
package proxy

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/daemon"
	"github.com/seed-181794aa/ratelimit/cmd/internal/metrics"
	"github.com/seed-181794aa/ratelimit/httplimit"
)

// Config configures a Proxy. Upstream and Log are required.
type Config struct {
	Upstream     *url.URL
	PreserveHost bool          // send the request's Host instead of the upstream's
	Timeout      time.Duration // until the upstream begins to answer; 0 for no limit

	// Policy holds the limits. If it is nil, every request passes without a decision.
	Policy  *httplimit.Policy
	Client  httplimit.ClientAddress // X-Forwarded fields are believed as it says
	Fields  httplimit.Fields
	Options []httplimit.Option // that the fields above do not set

	Underscores bool          // keep fields with _ in their names
	BodyTimeout time.Duration // between two pieces of a request's body; 0 for no limit

	Log       *slog.Logger
	LostLines func() uint64 // of the log
	Access    Access
	ShowKeys  bool // otherwise the log and the live page have hashes, except of addresses

	Refused func(*http.Request, httplimit.Event) // the limiter's hook; may be nil
}

// Proxy is the handler. It is safe for concurrent use.
type Proxy struct {
	Config
	Limiter *httplimit.Limiter
	Metrics *metrics.Metrics

	upstream httputil.ReverseProxy // without ModifyResponse, which each request sets
	requests atomic.Int64          // under way, also after they have taken over their connection
	closing  atomic.Bool           // each connection is to be closed after its next response
	warned   atomic.Value          // the warnings of the policy in force, as []string
	via      via

	addressHeader string   // in canonical form
	fields        []string // that the limiter sets

	// Clients can cause refusals and errors at any rate. Each log has its own throttle, so
	// that a flood in one does not hide the other.
	refusals *daemon.Throttle
	errors   *slog.Logger
}

// New returns a proxy.
func New(c Config) (_ *Proxy, err error) {
	p := &Proxy{
		Config: c, via: newVia(), refusals: daemon.NewThrottle(), fields: limiterFields(c),
		addressHeader: http.CanonicalHeaderKey(c.Client.Header),
		errors:        daemon.Throttled(c.Log),
	}
	p.Limiter, err = httplimit.New(cmp.Or(c.Policy, httplimit.Rules()), append([]httplimit.Option{
		httplimit.WithClientAddress(c.Client), httplimit.WithHooks(p.hooks()),
		httplimit.WithFields(c.Fields), httplimit.WithoutClaims(),
	}, c.Options...)...)
	if err != nil {
		return nil, err
	}
	p.Metrics = metrics.New(p.Limiter, c.LostLines)
	p.upstream = p.newReverseProxy()
	return p, nil
}

// ServeHTTP passes a request on or refuses it.
//
// The state of the request is in its responseRecorder, because a context value needs a copy of
// the request. For the same reason ServeHTTP calls Admit and not Middleware.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := &responseRecorder{
		ResponseWriter: w, proxy: p, version: 10*r.ProtoMajor + r.ProtoMinor, start: time.Now(),
	}
	if r.ContentLength != 0 {
		rec.request = p.newBody(w, r.Body)
	}
	if r.Host == "" { // of such a request, the upstream would get its own host
		r.Host = p.Upstream.Host
	}
	p.requests.Add(1)
	defer rec.finish(r) // also if the upstream breaks off, which panics
	if status := p.check(r); status != 0 {
		http.Error(rec, http.StatusText(status), status)
		return
	}
	p.dropConnectionFields(r.Header)
	p.dropMisreadable(r.Header)
	p.dropForged(r)
	if p.decide(rec, r) {
		if rec.request != nil {
			r = rec.request.of(r)
		}
		rec.sent = time.Now()
		upstream := p.upstream
		upstream.ModifyResponse = rec.modifyResponse
		upstream.ServeHTTP(rec, r)
	}
}

func (p *Proxy) decide(rec *responseRecorder, r *http.Request) bool {
	if p.Policy == nil {
		rec.granted = true
		return true
	}
	rec.decision, rec.settlement, rec.granted = p.Limiter.Admit(rec, r)
	rec.ResponseWriter = rec.settlement.Writer(rec.ResponseWriter)
	return rec.granted
}

func (p *Proxy) hooks() httplimit.Hooks {
	h := httplimit.Hooks{Refused: p.Refused}
	if p.Access == AccessAll {
		h.Granted = recordKey
	}
	if p.Access != AccessOff {
		h.Refused = func(r *http.Request, e httplimit.Event) {
			if p.Refused != nil {
				p.Refused(r, e)
			}
			recordKey(r, e)
		}
	}
	return h
}

func recordKey(_ *http.Request, e httplimit.Event) { e.Writer.(*responseRecorder).key = e.Key }
