package httplimit

import (
	"context"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

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

// Refusal is why a request is not granted, and what the client may be told: see Limiter.Take and
// WithRefusal.
type Refusal struct {
	// Status is the status that Middleware would write:
	//   - 429 if rules refuse the request.
	//   - 400 if the request lacks a key, has a key more than once, or has a path that servers read
	//     differently.
	//   - 503 if the store failed, or the context timed out during a delay.
	//   - 499 if the context was cancelled during a delay.
	Status int
	// Detail is a sentence for the client. It has names of rules and keys, but no value of a key.
	Detail string
	// Violations are the rules that refuse the request, in the order of the policy. There are none
	// unless Status is 429.
	Violations []Violation

	wait time.Duration // tb.Never if no wait helps
}

// RetryAfter returns how long the client should wait before it retries: the longest wait of the
// Violations, or 4 s if the store failed, and up to half of it more, which spreads the clients out.
// It reports false if no wait helps, because the status is 400 or a cost can never fit, and if the
// request ended during a delay.
func (r *Refusal) RetryAfter() (wait time.Duration, ok bool) {
	if r.wait == tb.Never {
		return 0, false
	}
	return r.wait, true
}

// Violation is the decision of one rule that refuses a request.
type Violation struct {
	Decision
	Key []KeyPart // of the bucket, as in Event
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
