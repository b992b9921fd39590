package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-181794aa/ratelimit/cmd/internal/accesslog"
	"github.com/seed-181794aa/ratelimit/cmd/internal/beforerules"
	"github.com/seed-181794aa/ratelimit/cmd/internal/cli"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/internal/compositekey"
	"github.com/seed-181794aa/ratelimit/tb"
)

// policyMode decides requests as tb-proxy does with a policy.
type policyMode struct {
	*keyer            // finds the peer, and has the fields that the parts need
	now     time.Time // of the current request, which is the clock of the limiter
	limiter *httplimit.Limiter
	parts   []*part
	request http.Request
	url     url.URL
	packed  []byte // reused

	outcome  PolicyOutcome                // its counts of requests
	refusals map[string]map[string]uint64 // by the label of the rule, and by key
	maxKeys  int                          // of each rule
}

func newPolicyMode(o *Options) (*policyMode, error) {
	p := &policyMode{refusals: make(map[string]map[string]uint64), maxKeys: o.MaxKeys}
	p.request = http.Request{
		Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	var err error
	if p.keyer, err = newKeyer(o); err != nil {
		return nil, err
	}
	p.parts, p.extra = newParts(o.Policy)
	p.limiter, err = httplimit.New(o.Policy, httplimit.WithoutClaims(),
		httplimit.WithClientAddress(httplimit.ClientAddress{
			Trusted: cli.Prefixes(o.Trusted), IPv6Bits: o.IPv6Prefix,
		}),
		httplimit.WithLimiterOptions(
			tb.WithClock(func() time.Time { return p.now }), tb.WithMaxKeys(o.MaxKeys),
		),
		httplimit.WithHooks(httplimit.Hooks{Refused: p.countKey, Shadow: p.countKey}))
	return p, err
}

func (p *policyMode) countKey(_ *http.Request, e httplimit.Event) {
	if e.Allowed {
		return
	}
	if p.refusals[e.Rule] == nil {
		p.refusals[e.Rule] = make(map[string]uint64)
	}
	keys, key := p.refusals[e.Rule], httplimit.FormatKey(e.Key)
	if keys[key] > 0 || len(keys) < p.maxKeys {
		keys[key]++
	}
}

func (p *policyMode) pack(rec *accesslog.Record, format accesslog.Format) pending {
	peer, forwarded := p.origin(rec)
	p.packed = compositekey.Append(p.packed[:0], peer)
	p.packed = compositekey.Append(p.packed, strings.Join(forwarded, ","))
	for i, part := range p.parts {
		v := part.value(rec)
		if len(v) > 0 && i < headers {
			part.seen++
		}
		switch {
		case i == thePath && !format.NamesFields() && format != "gin" && bytes.ContainsRune(v, ' '):
			v = nil // net/http refuses such a request line; gin logs %20 as a space
		case i == thePath && len(v) == 0 && (len(rec.Method) > 0 || format.NamesFields()):
			v = []byte("/") // as in GET http://host HTTP/1.1, or the log has no paths
		case i == theQuery && part.rule == "": // it may be long: only what tb-proxy refuses counts
			at := bytes.IndexAny(v, "# ")
			v = v[max(at, 0):max(at+1, 0)]
		}
		p.packed = compositekey.Append(p.packed, v)
	}
	return pending{parts: string(p.packed)}
}

func (p *policyMode) decide(at pending) (granted bool, err error) {
	p.now = time.Unix(0, at.time)
	parts := compositekey.Parts(at.parts)
	peer, forwarded, values := parts[0], parts[1], parts[2:]
	r := &p.request
	clear(r.Header)
	r.RemoteAddr = peer
	trusted := p.limiter.TrustsPeer(r)
	if forwarded != "" && trusted {
		r.Header["X-Forwarded-For"] = []string{forwarded}
	}
	for i, part := range p.parts[headers:] {
		name := strings.TrimPrefix(part.name, "header:")
		if v := values[headers+i]; v != "" && !beforerules.Drops(name, trusted) {
			part.seen++
			r.Header[name] = strings.Split(v, "\n")
		}
	}
	r.Method, r.Host = cmp.Or(values[theMethod], http.MethodGet), values[theHost]
	path, raw, ok := resolve(values[thePath])
	p.url = url.URL{Path: path, RawPath: raw, RawQuery: values[theQuery]}
	r.URL = &p.url
	if status, _ := beforerules.Status(r); !ok || status != 0 {
		p.outcome.Unclear++
		return true, nil // no rule has refused it
	}
	if part := p.parts[theAddress]; part.rule != "" && p.limiter.ClientAddress(r).IsValid() {
		part.seen++
	}
	_, settlement, refusal := p.limiter.Take(nil, r)
	if refusal != nil {
		p.outcome.Refused++
		return false, nil
	}
	if status := values[theStatus]; !slices.Contains([]string{"", "460", "499"}, status) {
		settlement.ReadStatus(status) // and not one for a client that has left
	}
	settlement.Finish() // at the time of the line
	p.outcome.Granted++
	return true, nil
}

// resolve returns a path as selectors compare it. It reports false if tb-proxy refuses the path.
func resolve(path string) (resolved, raw string, ok bool) {
	if u, err := url.ParseRequestURI(path); err == nil {
		resolved, raw, ok = httplimit.ResolvePath(u)
	}
	return resolved, raw, ok && strings.HasPrefix(resolved, "/")
}

func (o *Options) readPolicy(ctx context.Context, stderr io.Writer) error {
	if o.PolicyFile == "" {
		return nil
	}
	data, err := cli.ReadFile(ctx, o.PolicyFile)
	if err != nil {
		return err
	}
	if o.Policy, err = cli.ParsePolicyFile(o.PolicyFile, data); err != nil {
		return err
	}
	if err := checkReplayable(o.Policy); err != nil {
		return fmt.Errorf("%s: %w", o.PolicyFile, err)
	}
	for _, text := range o.Policy.Warnings() {
		fmt.Fprintf(stderr, "tb: %s: warning: %s\n", o.PolicyFile, text)
	}
	return nil
}

// checkReplayable returns an error that names the first rule that no log shows the effect of.
func checkReplayable(p *httplimit.Policy) error {
	for _, s := range p.Sets {
		for r := range s.All() {
			var why string
			switch {
			case strings.HasPrefix(r.Cost.Source, "response:") && r.Cost.Source != "response:status":
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

// PolicyOutcome has the decisions of a policy.
type PolicyOutcome struct {
	// Granted and Refused count requests.
	Granted uint64 `json:"granted"`
	Refused uint64 `json:"refused"`
	// Unclear counts the requests that tb-proxy answers itself before any rule, nearly always with
	// 400: servers disagree about their path, or it is not a path. They are in neither of the counts
	// above.
	Unclear uint64 `json:"unclear"`
	// Rules has the rules in the order of the policy.
	Rules []RuleOutcome `json:"rules"`

	missing error
}

// RuleOutcome has the decisions of one rule.
type RuleOutcome struct {
	// Rule is the name of the rule, after the name of its set if several sets have the name.
	Rule   string `json:"rule"`
	Shadow bool   `json:"shadow"`
	// Granted and Refused count the requests that the rule applied to, by its own decision. A
	// request that only other rules refused is in neither. A shadow rule counts only requests that
	// all enforced rules granted.
	Granted uint64 `json:"granted"`
	Refused uint64 `json:"refused"`
	// KeysRefused is how many keys were refused at least once, up to --max-keys. Top has the ten keys
	// refused most. In both, a request that several rules refuse counts for the one with the longest
	// wait.
	KeysRefused uint64    `json:"keys_refused"`
	Top         []RuleKey `json:"top"`
}

// RuleKey is a key that a rule has refused.
type RuleKey struct {
	Key     string `json:"key"`
	Refused uint64 `json:"refused"`
}

func (p *policyMode) fill(rep *Report) {
	o := p.outcome
	o.Rules = []RuleOutcome{}
	for _, s := range p.limiter.Stats() {
		rule := RuleOutcome{
			Rule: s.Label, Shadow: s.Shadow, Top: []RuleKey{},
			Granted: s.Granted + s.ShadowGranted,
			Refused: s.Refused + s.Rejected + s.ShadowRefused,
		}
		rep.EvictedInDebt += s.Table.EvictedInDebt
		rule.KeysRefused = uint64(len(p.refusals[s.Label]))
		for key, n := range p.refusals[s.Label] {
			rule.Top = append(rule.Top, RuleKey{key, n})
		}
		slices.SortFunc(rule.Top, func(a, b RuleKey) int {
			return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Key, b.Key))
		})
		rule.Top = rule.Top[:min(len(rule.Top), shownKeys)]
		o.Rules = append(o.Rules, rule)
	}
	for _, part := range p.parts {
		if part.rule != "" && part.seen == 0 && rep.Requests > 0 {
			o.missing = errors.Join(o.missing,
				fmt.Errorf("no request has %s, which rule %s of --policy needs", part.name, part.rule))
		}
	}
	seen := p.parts[theAddress].seen // 0 if no rule looks at it
	if n := o.Granted + o.Refused - seen; seen > 0 && float64(n) > maxLate*float64(rep.Requests) {
		rep.Doubts = append(rep.Doubts, ofAll(n, rep.Requests, "request")+" have no address, but"+
			" perhaps the name of a host. They share a bucket in rules by ip:address.")
	}
	rep.Policy = &o
}

func (o *PolicyOutcome) tables() []table {
	if o == nil {
		return nil
	}
	rules := table{ID: "rules", Title: "What each rule decides", Of: "rule",
		Head: []string{"granted", "refused", "share", "keys refused", "mode"}}
	keys := table{ID: "keys", Title: "Refused most", Of: "key", Head: []string{"refused", "rule"}}
	for _, r := range o.Rules {
		mode := "enforce"
		if r.Shadow {
			mode = "shadow"
		}
		rules.add(r.Rule, grouped(r.Granted), grouped(r.Refused),
			percent(share(r.Refused, r.Granted+r.Refused)), grouped(r.KeysRefused), mode)
		for _, k := range r.Top {
			keys.add(shorten(k.Key, 100), grouped(k.Refused), r.Rule)
		}
	}
	return []table{rules, keys}
}
