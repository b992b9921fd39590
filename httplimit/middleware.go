package httplimit

import (
	"context"
	"net/http"
	"strings"
)

// Middleware returns a handler that passes granted requests to next, with its fields already set
// in the header of the response, and responds to all other requests itself. It passes the
// ResponseWriter on unchanged, unless a rule is adaptive or has its cost in the response: see
// Settlement.Writer.
//
// If several limiters are nested, RateLimit and RateLimit-Policy list the rules of all of them, and
// the fields that occur only once are about the rule with the fewest tokens left.
func (l *Limiter) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, settlement, granted := l.begin(r).admit(w, true)
		if !granted {
			return
		}
		if settlement != nil {
			defer settlement.Finish()
			w = settlement.Writer(w)
		}
		if l.inContext && d.Rule != "" {
			r = r.WithContext(newContext(r.Context(), d))
		}
		next.ServeHTTP(w, r)
	})
}

// Decide takes the tokens for a request. If the policy grants them, Decide sets fields in w's
// header. If not, Decide or the function of WithRefusal writes the whole response. If a rule delays
// the request, Decide returns when its tokens may be used. If the context of the request ends
// before, the status is 499 or 503: see Refusal.
//
// Use Decide where there is no handler to wrap.
//
// Decide returns the decision of the binding rule. If the request is granted, that rule has the
// fewest tokens left. If it is refused with 429, the rule has the longest wait, or a bucket that
// the cost can never fit, and with 400 the request lacks a key of the rule, has it more than once,
// or has a path that servers read differently. Decide returns the zero Decision, which has no Rule,
// if no rule applied, the store failed or the request ended.
//
// If a rule has its cost in the response, the estimate stands: Admit settles it. The rate of an
// adaptive rule stays as it is.
func (l *Limiter) Decide(w http.ResponseWriter, r *http.Request) (d Decision, ok bool) {
	d, s, ok := l.begin(r).admit(w, false)
	s.Finish()
	return d, ok
}

// Admit is Decide for a policy that has costs in responses or adaptive rules. The caller settles a
// granted request with the Settlement, which is nil if there is nothing to settle.
func (l *Limiter) Admit(w http.ResponseWriter, r *http.Request) (
	d Decision, s *Settlement, ok bool,
) {
	return l.begin(r).admit(w, true)
}

// admit is Admit. Adaptive rules observe the response only if the caller passes it to s.
func (c *call) admit(w http.ResponseWriter, observed bool) (d Decision, s *Settlement, ok bool) {
	c.w, c.header = w, w.Header()
	if o := c.decide(); o != granted {
		binding, status, detail := c.refusal(o)
		if c.l.answer != nil && status != statusClientGone {
			c.l.answer(c.w, c.r, c.newRefusal(o, status, detail))
		} else {
			c.write(status, detail)
		}
		d = binding.toDecision()
		c.end()
		return d, nil, false
	}
	d, s = c.grant(observed)
	return d, s, true
}

// FromContext returns the decision of the binding rule on the request with this context, if
// Middleware of a Limiter with WithContext has passed it on. The binding rule is the one with the
// fewest tokens left, in all such limiters. FromContext reports false if no rule applied, or the
// store failed and the request passed.
func FromContext(ctx context.Context) (Decision, bool) {
	d, ok := ctx.Value(decisionKey{}).(Decision)
	return d, ok
}

type decisionKey struct{}

// newContext returns ctx with a decision, unless an outer limiter has fewer tokens left.
func newContext(ctx context.Context, d Decision) context.Context {
	if outer, ok := FromContext(ctx); ok && outer.Remaining <= d.Remaining {
		return ctx
	}
	return context.WithValue(ctx, decisionKey{}, d)
}

// DropFields drops the fields in which an upstream reports its own limits and which can be
// there only once: RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset and every field that
// starts with X-RateLimit-. RateLimit and RateLimit-Policy are lists, so the upstream's items
// stay. It is for ModifyResponse of an httputil.ReverseProxy behind Middleware, which would add the
// upstream's fields to the limiter's.
func DropFields(h http.Header) {
	const legacy = "X-RateLimit-"
	for name := range h {
		if strings.EqualFold(name, fieldLimit) || strings.EqualFold(name, fieldRemaining) ||
			strings.EqualFold(name, fieldReset) ||
			len(name) >= len(legacy) && strings.EqualFold(name[:len(legacy)], legacy) {
			delete(h, name)
		}
	}
}
