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
type Limiter struct {
	settings
	program atomic.Pointer[program]
	reload  sync.Mutex    // one SetPolicy at a time
	calls   sync.Pool     // of *call
	made    atomic.Uint32 // calls
}

// New returns a limiter that applies p. The error joins everything that is wrong with the
// policy and the options.
func New(p *Policy, opts ...Option) (*Limiter, error) {
	l := &Limiter{}
	l.calls.New = func() any { return &call{l: l, stripe: l.made.Add(1)} }
	var errs []error
	errs = append(errs, l.apply(opts))
	first, err := l.compile(p, nil)
	l.program.Store(first)
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("httplimit: %w", err)
	}
	return l, nil
}

// SetPolicy replaces the policy, from the next request on. Rules with the same set, name,
// keys and limit as before keep their buckets and counts. If p is not accepted the policy
// stays as it was, and the error says so.
func (l *Limiter) SetPolicy(p *Policy) error {
	l.reload.Lock()
	defer l.reload.Unlock()
	next, err := l.compile(p, l.program.Load())
	if err != nil {
		return fmt.Errorf("httplimit: the policy stays as it was: %w", err)
	}
	l.program.Store(next)
	return nil
}

// Middleware returns a handler that passes the requests that the policy grants on to
// next, with the fields of the answer already set in the header of the response, and
// answers the others itself. The ResponseWriter is passed on as it is.
func (l *Limiter) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, granted := l.Decide(w, r)
		if !granted {
			return
		}
		if ctx := r.Context(); d.Rule != "" {
			silent := l.silent
			if outer, ok := ctx.Value(decisionKey{}).(*decisionContext); silent && ok {
				silent = outer.silent
			}
			r = r.WithContext(&decisionContext{ctx, d, silent})
		}
		next.ServeHTTP(w, r)
	})
}

// Decide charges a request. If the policy grants it, the fields of the answer are set in
// w's header; if not, w has been answered. It is Middleware for programs that are built in
// another way, and for those that cannot afford a copy of the request.
//
// The decision is that of the binding rule, also if it refused. It is the zero Decision,
// which has no Rule, if no rule applied or a limiter failed.
func (l *Limiter) Decide(w http.ResponseWriter, r *http.Request) (d Decision, ok bool) {
	c := l.begin(r)
	switch c.decide() {
	case granted:
		ok = true
		if binding := c.binding(); binding != nil {
			if !l.silent {
				c.grant(w.Header(), binding)
			}
			c.tell(l.hooks.Granted, binding, nil)
			d = binding.answer()
		}
	case refused:
		d = c.refuse(w)
	case lacking:
		d = c.reject(w)
	case failed:
		c.problem(w, http.StatusServiceUnavailable, "the rate limiter cannot decide")
	}
	c.end()
	return d, ok
}

// Decision is the answer of one rule to a request.
type Decision struct {
	tb.Decision
	Rule  string // its name, with that of its set before it if the name is not unique
	Limit tb.Limit
	Cost  float64
}

// FromContext returns the decision of the binding rule, which is the one with the fewest
// tokens left, of the request with this context. There is none if no rule applied, or
// the limiter failed and let the request pass.
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
	silent   bool // no fields tell of it, nor of one further out
}

func (c *decisionContext) Value(key any) any {
	if key == (decisionKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// RuleStats is what became of the requests that a rule applied to.
type RuleStats struct {
	Set    string // "" if the policy has one set
	Rule   string
	Shadow bool
	Limit  tb.Limit
	// Granted and Refused count requests by the rule's own answer. A request that only
	// other rules refused counts for none. ShadowGranted and ShadowRefused are the same
	// while it is a shadow rule.
	Granted, Refused, ShadowGranted, ShadowRefused uint64
	// Errors counts the requests that the rule's limiter could not decide on.
	Errors uint64
	// Table is of the rule's limiter, if it is one that tells.
	Table tb.Stats
}

// Stats returns the counts of each rule of the policy, in its order.
func (l *Limiter) Stats() []RuleStats {
	var all []RuleStats
	for _, r := range l.program.Load().rules {
		st := r.total()
		st.Set, st.Rule, st.Shadow, st.Limit = r.set, r.Name, r.Shadow, r.Limit
		st.Table = r.table()
		all = append(all, st)
	}
	return all
}

func (s *state) table() tb.Stats {
	switch {
	case s.addresses != nil:
		return s.addresses.Stats()
	case s.texts != nil:
		return s.texts.Stats()
	}
	if t, ok := s.other.(interface{ Stats() tb.Stats }); ok {
		return t.Stats()
	}
	return tb.Stats{}
}

func (l *Limiter) now() time.Time {
	if l.clock != nil {
		return l.clock()
	}
	return time.Now()
}
