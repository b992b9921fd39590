package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Limiter applies a policy to requests. It is safe for concurrent use.
//
// Most applications wrap their handler with Middleware. Decide and Admit are for applications that
// cannot, and Take is for servers that write no http.ResponseWriter. Explain reports what the rules
// would decide, and takes nothing. SetPolicy replaces the policy, SetFields and SetSharedSecret
// change a setting, and Stats reports what the rules have counted. StopWaiting is for the end of a
// server whose policy delays requests. ClientAddress and TrustsPeer are for proxies.
type Limiter struct {
	settings
	policy atomic.Pointer[compiled]
	reload sync.Mutex    // is held while policy changes
	calls  sync.Pool     // of *call
	made   atomic.Uint32 // calls
	late   atomic.Int64  // calls of limiters that no request waits for any more
	waits  waits
}

// PerAddress returns a limiter of capacity tokens for each client address, refilled at refillPerSec
// tokens a second, of which a request takes one: see tb.LimitPerSecond and WithClientAddress. The
// name of its rule is "per-address". It panics if an argument or option is out of range.
func PerAddress(capacity int, refillPerSec float64, opts ...Option) *Limiter {
	limit, err := tb.LimitPerSecond(capacity, refillPerSec)
	if err != nil {
		panic(err)
	}
	rule := Rule{Name: "per-address", Keys: []string{"ip:address"}, Limit: limit}
	l, err := New(Rules(rule), opts...)
	if err != nil {
		panic(err)
	}
	return l
}

// New returns a limiter that applies p. The error joins everything that is wrong with the
// policy and the options.
func New(p *Policy, opts ...Option) (*Limiter, error) {
	l := &Limiter{waits: waits{stopped: make(chan struct{})}}
	l.calls.New = func() any { return &call{l: l, stripe: l.made.Add(1)} }
	optionErr := l.apply(opts)
	first, err := l.compile(p, nil)
	if err = errors.Join(optionErr, err); err != nil {
		return nil, fmt.Errorf("httplimit: %w", err)
	}
	first.look = l.look
	first.startControls()
	l.policy.Store(first)
	return l, nil
}

// SetPolicy replaces the policy, from the next request on. A rule keeps its buckets and counts
// if its set, name and keys stay the same. If its limit changes, each bucket keeps its tokens, but
// not more than the new capacity, and its debt: see cas.Limiter.SetLimit. A limiter of WithLimiter
// is kept across a change of the limit if it has a method SetLimit(tb.Limit) error. If p has an
// error, or a SetLimit returns one, the policy and all limits stay as they were.
func (l *Limiter) SetPolicy(p *Policy) error {
	l.reload.Lock()
	defer l.reload.Unlock()
	before := l.policy.Load()
	next, err := l.compile(p, before)
	if err == nil {
		err = next.setLimits(before)
	}
	if err != nil {
		return fmt.Errorf("httplimit: the policy stays as it was: %w", err)
	}
	next.look = before.look
	next.startControls()
	l.policy.Store(next)
	return nil
}

// SetFields changes which fields responses have, from the next request on.
func (l *Limiter) SetFields(f Fields) error {
	if err := f.prepare(); err != nil {
		return fmt.Errorf("httplimit: %w", err)
	}
	l.setLook(func(k *look) { k.fields = f })
	return nil
}

// SetSharedSecret changes the text of WithSharedSecret, from the next request on. Long keys then
// have other buckets in a store.
func (l *Limiter) SetSharedSecret(text string) {
	l.setLook(func(k *look) { k.setShared(text) })
}

func (l *Limiter) setLook(change func(*look)) {
	l.reload.Lock()
	defer l.reload.Unlock()
	next := *l.policy.Load()
	change(&next.look)
	l.policy.Store(&next)
}

// Middleware returns a handler that passes granted requests to next, with its fields already set
// in the header of the response, and responds to all other requests itself. It passes the
// ResponseWriter on unchanged, unless a rule is adaptive or has its cost in the
// response: see Settlement.Writer.
//
// If several limiters are nested, RateLimit and RateLimit-Policy list the rules of all of them, and
// the fields that occur only once are about the rule with the fewest tokens left.
func (l *Limiter) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, settlement, granted := l.Admit(w, r)
		if !granted {
			return
		}
		if settlement != nil {
			defer settlement.Finish()
			w = settlement.Writer(w)
		}
		if ctx := r.Context(); d.Rule != "" {
			c := &decisionContext{ctx, d, l.policy.Load().fields.OnlyRefused}
			if outer, ok := ctx.Value(decisionKey{}).(*decisionContext); ok {
				c.silent = c.silent && outer.silent
				if outer.decision.Remaining <= d.Remaining {
					c.decision = outer.decision
				}
			}
			r = r.WithContext(c)
		}
		next.ServeHTTP(w, r)
	})
}

// Decide takes the tokens for a request. If the policy grants them, Decide sets fields in w's
// header; if not, Decide writes the whole response. If a rule delays the request, Decide returns
// when its tokens may be used. If the request ends before, Decide writes status 499.
//
// Use Decide where there is no handler to wrap, or to save the copy of the request that Middleware
// makes. Without this copy, FromContext and ModifyResponse do not know of the decision.
//
// Decide returns the decision of the binding rule, granted or refused. It returns the zero
// Decision, which has no Rule, if no rule applied, a limiter failed or the request ended.
//
// If a rule has its cost in the response, the estimate stands: Admit settles it. The rate of an
// adaptive rule stays as it is.
func (l *Limiter) Decide(w http.ResponseWriter, r *http.Request) (d Decision, ok bool) {
	d, s, ok := l.admit(w, r, false)
	s.Finish()
	return d, ok
}

// Admit is Decide for a policy that has costs in responses or adaptive rules. The caller settles a
// granted request with the Settlement, which is nil if there is nothing to settle.
func (l *Limiter) Admit(w http.ResponseWriter, r *http.Request) (
	d Decision, s *Settlement, ok bool,
) {
	return l.admit(w, r, true)
}

// admit is Admit. Adaptive rules observe the response only if the caller passes it to s.
func (l *Limiter) admit(w http.ResponseWriter, r *http.Request, observed bool) (
	d Decision, s *Settlement, ok bool,
) {
	c := l.begin(r)
	c.w, c.header = w, w.Header()
	if o := c.decide(); o != granted {
		a := c.refusal(o)
		if l.refusalHandler != nil && a.status != statusClientGone {
			c.serveRefusal(&a, o)
		} else {
			c.write(&a)
		}
		c.end()
		return a.decision, nil, false
	}
	d, s = c.grant(observed)
	return d, s, true
}

// Decision is the decision of one rule on a request.
type Decision struct {
	tb.Decision
	// Rule is the name of the rule. The name of its set is before it, as in "api/free", if
	// another set has a rule of that name.
	Rule  string
	Limit tb.Limit
	Cost  float64
	// Delay is how long the rule made a granted request wait. It is 0 unless OnLimit is Delay.
	Delay time.Duration
}

// FromContext returns the decision of the binding rule on the request with this context. The
// binding rule is the one with the fewest tokens left, in all limiters that the request has passed.
// FromContext reports false if no rule
// applied, or a limiter failed and the request passed.
func FromContext(ctx context.Context) (Decision, bool) {
	if c, ok := ctx.Value(decisionKey{}).(*decisionContext); ok {
		return c.decision, true
	}
	return Decision{}, false
}

type decisionKey struct{}

// decisionContext is context.WithValue in one allocation instead of two.
type decisionContext struct {
	context.Context
	decision Decision
	silent   bool // neither this limiter nor an outer one has set fields
}

func (c *decisionContext) Value(key any) any {
	if key == (decisionKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Explanation is the decision that a rule would make on a request.
type Explanation struct {
	// Decision is the decision of the rule by itself. It is the zero tb.Decision if the rule's
	// limiter cannot be asked without taking, or fails.
	Decision
	Key []KeyPart // of the bucket, as in Event
	// Level is how full the bucket is now. It is the zero tb.Level, which no bucket has, if
	// the limiter does not report levels.
	Level tb.Level
	// Tier is the name of the request's tier, or "" if it has the limit of the rule itself.
	Tier   string
	Shadow bool
	// Adaptive is the range of the rate, or zero if the rate is fixed.
	Adaptive Adaptive
	// MaxDelay is the longest delay of the rule, or 0 if the rule does not delay.
	MaxDelay time.Duration
	// Estimate means that Cost is an estimate, because the cost is in the response.
	Estimate bool
	// MissingKey is the key that the request lacks, if the rule refuses the request for that,
	// or else "".
	MissingKey string
	// AmbiguousKey is the key that the request has more than once and is refused for, or
	// "path" if servers disagree about its path (see ResolvePath), or "".
	AmbiguousKey string
}

// Explain returns the rules that apply to a request, and takes nothing.
func (l *Limiter) Explain(r *http.Request) []Explanation {
	c := l.begin(r)
	defer c.end()
	c.findRules()
	c.now = l.clock()
	var all []Explanation
	for i := range c.entries {
		e := &c.entries[i]
		x := Explanation{
			Key: c.keyParts(e.rule), Tier: e.tierName, Shadow: e.Shadow,
			Estimate: e.price.response.inResponse,
		}
		switch e.fault {
		case isMissing:
			x.MissingKey = e.faultyKey
		case isRepeated, isUnclear:
			x.AmbiguousKey = e.faultyKey
		}
		if e.fault != noFault {
			e.decision = tb.Decision{RetryAfter: tb.Never}
		} else if c.l.newLimiter == nil && c.prepare(e) == nil {
			// An error leaves the zero Decision and the zero Level.
			e.decision, _ = e.charge.Peek(c.now)
			c.explainDelay(e)
			if level, err := e.charge.(leveler).Level(c.now); err == nil {
				x.Level = level
			}
		}
		if e.control != nil {
			x.Adaptive = e.Adaptive
		}
		if e.OnLimit == Delay {
			x.MaxDelay = e.MaxDelay
		}
		x.Decision = e.toDecision()
		all = append(all, x)
	}
	return all
}
