package replay

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/cmd/internal/textfile"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// policyMode decides requests as tb-proxy does with a policy.
type policyMode struct {
	keyer   *keyer    // finds the peer
	now     time.Time // of the current request, which is the clock of the limiter
	limiter *httplimit.Limiter
	facts   []*fact
	request http.Request
	url     url.URL
	packed  []byte

	outcome  PolicyOutcome            // its counts of requests
	refusals map[string]*ruleRefusals // by the label of the rule
}

// ruleRefusals are the keys that a rule refuses.
type ruleRefusals struct {
	ranking ranking
	keys    visitors
}

func newPolicyMode(o *Options) (*policyMode, error) {
	p := &policyMode{facts: newFacts(o.Policy), refusals: make(map[string]*ruleRefusals)}
	p.request = http.Request{
		URL: &p.url, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	var err error
	if p.keyer, _, err = newKeyer(o); err != nil {
		return nil, err
	}
	p.limiter, err = httplimit.New(o.Policy, httplimit.WithoutClaims(),
		httplimit.WithClientAddress(httplimit.ClientAddress{
			Trusted: o.Trusted, IPv6Bits: o.IPv6Prefix,
		}),
		httplimit.WithLimiterOptions(
			tb.WithClock(func() time.Time { return p.now }), tb.WithMaxKeys(o.MaxKeys),
		),
		httplimit.WithHooks(httplimit.Hooks{Refused: p.countKey, Shadow: p.countKey}))
	return p, err
}

func (p *policyMode) fields() []string { return place(p.facts) }

// countKey counts a refusal of the key of a rule.
func (p *policyMode) countKey(_ *http.Request, e httplimit.Event) {
	if e.Allowed {
		return
	}
	r := p.refusals[e.Rule]
	if r == nil {
		r = &ruleRefusals{newRanking(maxTracked), newVisitors(maxVisitors)}
		p.refusals[e.Rule] = r
	}
	key := []byte(httplimit.FormatKey(e.Key))
	r.ranking.track(key, &r.keys).Value.add(0, 0, false)
}

// pack returns what the rules look at. The cost is theirs.
func (p *policyMode) pack(
	rec *accesslog.Record, format accesslog.Format,
) (packed []byte, cost float64) {
	p.packed = p.packed[:0]
	add := func(s string) {
		p.packed = append(binary.AppendUvarint(p.packed, uint64(len(s))), s...)
	}
	peer, forwarded := p.keyer.origin(rec)
	add(view(peer))
	add(strings.Join(forwarded, ","))
	for i, f := range p.facts {
		v := f.value(rec)
		if i == thePath && len(v) == 0 && (len(rec.Method) > 0 || format.NamesFields()) {
			v = []byte("/") // as in GET http://host HTTP/1.1, or the log has no paths
		}
		add(view(v))
	}
	return p.packed, 0
}

func (p *policyMode) decide(at pending, packed []byte) (granted bool, err error) {
	p.now = time.Unix(0, at.time)
	rest := string(packed)
	next := func() (s string) {
		size, n := binary.Uvarint(packed)
		s = rest[n:][:size]
		rest, packed = rest[n+len(s):], packed[n+len(s):]
		return s
	}
	r := &p.request
	clear(r.Header)
	r.RemoteAddr = next()
	if forwarded := next(); forwarded != "" {
		r.Header["X-Forwarded-For"] = []string{forwarded}
	}
	values := make([]string, len(p.facts))
	for i, f := range p.facts {
		if values[i] = next(); i >= headers && values[i] != "" {
			r.Header[strings.TrimPrefix(f.name, "header:")] = []string{values[i]}
		}
	}
	r.Method, r.Host = cmp.Or(values[theMethod], http.MethodGet), values[theHost]
	if !p.resolve(values[thePath], values[theQuery]) {
		p.outcome.Unclear++
		return false, nil
	}
	if f := p.facts[theAddress]; f.rule != "" && p.limiter.ClientAddress(r).IsValid() {
		f.seen++
	}
	if _, _, refusal := p.limiter.Take(nil, r); refusal != nil {
		p.outcome.Refused++
		return false, nil
	}
	p.outcome.Granted++
	return true, nil
}

// resolve sets the URL of the request. It reports false if tb-proxy refuses the path.
func (p *policyMode) resolve(path, query string) bool {
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return false
	}
	resolved, raw, ok := httplimit.ResolvePath(u)
	p.url = url.URL{Path: resolved, RawPath: raw, RawQuery: query}
	return ok && strings.HasPrefix(resolved, "/")
}

// readPolicy reads the policy if one is named, and prints its warnings.
func (c *Command) readPolicy(ctx context.Context, o *Options, stderr io.Writer) error {
	if c.Policy == "" {
		return nil
	}
	data, err := textfile.Await(ctx, c.Policy, func() (string, error) {
		data, err := os.ReadFile(c.Policy)
		return string(data), err
	})
	if err != nil {
		return err
	}
	if o.Policy, err = cli.ParsePolicyFile(c.Policy, []byte(data)); err != nil {
		return err
	}
	if err := checkReplayable(o.Policy); err != nil {
		return fmt.Errorf("%s: %w", c.Policy, err)
	}
	for _, text := range o.Policy.Warnings() {
		fmt.Fprintf(stderr, "tb: %s: warning: %s\n", c.Policy, text)
	}
	return nil
}

// checkReplayable returns an error that names the first rule that no log shows the effect of.
func checkReplayable(p *httplimit.Policy) error {
	for _, s := range p.Sets {
		for r := range s.All() {
			var why string
			switch {
			case strings.HasPrefix(r.Cost.Source, "response:"):
				why = "its cost is known after the response"
			case r.Adaptive != httplimit.Adaptive{}:
				why = "its rate follows what the upstream answers"
			case r.OnLimit == httplimit.Delay && !r.Shadow && !s.Shadow:
				why = "it delays requests, which would have ended later"
			default:
				continue
			}
			return fmt.Errorf("rule %q cannot be replayed: %s", r.Name, why)
		}
	}
	return nil
}
