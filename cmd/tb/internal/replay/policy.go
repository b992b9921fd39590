package replay

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/tb/internal/spacesaving"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/internal/hash"
	"github.com/seed-181794aa/ratelimit/tb"
)

// maxRefused is how many of the keys that a rule refuses are counted.
const maxRefused = 1024

// policyReplay decides requests as tb proxy does with a policy.
type policyReplay struct {
	limiter *httplimit.Limiter
	facts   *facts
	request http.Request
	url     url.URL

	granted, refused   uint64
	unclear, noAddress uint64
	refusals           map[string]*ruleRefusals // by the label of the rule
}

// ruleRefusals are the keys that a rule refuses.
type ruleRefusals struct {
	most *spacesaving.Summary[struct{}]
	keys *distinctCounter
}

// newPolicyReplay returns a replay of the policy of o, with a clock.
func newPolicyReplay(o *Options, now func() time.Time) (*policyReplay, error) {
	p := &policyReplay{
		facts:    newFacts(o.Policy),
		refusals: make(map[string]*ruleRefusals),
	}
	p.request = http.Request{
		URL: &p.url, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	var err error
	p.limiter, err = httplimit.New(o.Policy, httplimit.WithoutClaims(), httplimit.WithSilentGrants(),
		httplimit.WithClientAddress(httplimit.ClientAddress{
			Trusted: o.Trusted, IPv6Bits: o.IPv6Prefix,
		}),
		httplimit.WithLimiterOptions(
			tb.WithClock(now), tb.WithMaxKeys(o.MaxKeys), tb.WithOverflow(o.Overflow),
		),
		httplimit.WithHooks(httplimit.Hooks{Refused: p.countKey, Shadow: p.countKey}))
	return p, err
}

// countKey counts a refusal of the key of a rule.
func (p *policyReplay) countKey(_ *http.Request, e httplimit.Event) {
	if e.Allowed {
		return
	}
	r := p.refusals[e.Rule]
	if r == nil {
		r = &ruleRefusals{spacesaving.New[struct{}](maxRefused), newDistinctCounter(maxDistinct)}
		p.refusals[e.Rule] = r
	}
	key := []byte(httplimit.FormatKey(e.Key))
	entry, _ := r.most.See(key)
	entry.Count++
	r.keys.add(hash.Mix(hash.Add(hash.Empty, key)), 0)
}

// replay decides a request in a log of some format.
func (p *policyReplay) replay(
	rec *accesslog.Record, format accesslog.Format, peer []byte, forwarded []string,
) {
	r := &p.request
	clear(r.Header)
	r.Method, r.Host, r.RemoteAddr = http.MethodGet, string(rec.Host), string(peer)
	if len(forwarded) > 0 {
		r.Header["X-Forwarded-For"] = slices.Clone(forwarded)
	}
	query := ""
	if f := p.facts.query; f != nil {
		query = f.value(rec.Query, rec.Fields)
	}
	if f := p.facts.method; f != nil {
		r.Method = cmp.Or(f.value(rec.Method, rec.Fields), r.Method)
	}
	if f := p.facts.host; f != nil && r.Host != "" {
		f.seen++
	}
	for _, f := range p.facts.headers {
		if v := f.value(nil, rec.Fields); v != "" {
			r.Header[strings.TrimPrefix(f.name, "header:")] = []string{v}
		}
	}
	path := string(rec.Path)
	switch f := p.facts.path; {
	case path != "" && f != nil:
		f.seen++
	case path == "" && (len(rec.Method) > 0 || format.NamesFields()):
		path = "/" // as in GET http://host HTTP/1.1, or the log has no paths
	}
	if !p.resolve(path, query) {
		p.unclear++
		return
	}
	if f := p.facts.address; f != nil {
		if p.limiter.ClientAddress(r).IsValid() {
			f.seen++
		} else {
			p.noAddress++
		}
	}
	if _, granted := p.limiter.Decide(discard{}, r); granted {
		p.granted++
	} else {
		p.refused++
	}
}

// resolve sets the URL of the request. It reports false if tb proxy refuses the path.
func (p *policyReplay) resolve(path, query string) bool {
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return false
	}
	resolved, raw, ok := httplimit.ResolvePath(u)
	p.url = url.URL{Path: resolved, RawPath: raw, RawQuery: query}
	return ok && strings.HasPrefix(resolved, "/")
}

// discard is a response that is not written.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
