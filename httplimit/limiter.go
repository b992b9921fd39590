package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Limiter applies a policy to requests. It is safe for concurrent use. Most applications wrap their
// handler with Middleware. Decide, Admit and Take are for those that cannot.
type Limiter struct {
	settings
	policy atomic.Pointer[compiled]
	reload sync.Mutex    // is held while policy changes
	calls  sync.Pool     // of *call
	made   atomic.Uint32 // calls
	waits  waits
}

// PerAddress returns a limiter of capacity tokens for each client address, refilled at refillPerSec
// tokens a second, of which a request takes one: see tb.LimitPerSecond and WithClientAddress. The
// name of its rule is "per-address". It panics if an argument or option is out of range.
func PerAddress(capacity int, refillPerSec float64, opts ...Option) *Limiter {
	return per(policy.Rule{Name: "per-address", Keys: []string{"ip:address"}}, capacity, refillPerSec,
		opts)
}

// PerKey is PerAddress for each value of a function in place of each client address, such as the
// name of the user. All requests for which the function returns "" share one bucket. The function
// must be safe for concurrent use. The name of the rule is "per-key", and its key is "key".
func PerKey(
	capacity int, refillPerSec float64, key func(*http.Request) string, opts ...Option,
) *Limiter {
	rule := policy.Rule{Name: "per-key", Keys: []string{"key"}, OnMissing: policy.Shared}
	return per(rule, capacity, refillPerSec, append(slices.Clip(opts), WithExtractor("key", key)))
}

func per(rule policy.Rule, capacity int, refillPerSec float64, opts []Option) *Limiter {
	var err error
	rule.Limit, err = tb.LimitPerSecond(capacity, refillPerSec)
	if err != nil {
		panic(err)
	}
	l, err := New(policy.Rules(rule), opts...)
	if err != nil {
		panic(err)
	}
	return l
}

// New returns a limiter that applies p. The error joins everything that is wrong with the
// policy and the options. It names the fields of the policy as in JSON.
func New(p *policy.Policy, opts ...Option) (*Limiter, error) {
	l := &Limiter{waits: waits{stopped: make(chan struct{})}}
	l.calls.New = func() any { return &call{l: l, stripe: l.made.Add(1)} }
	err := l.apply(opts)
	l.policy.Store(&compiled{liveSettings: l.liveSettings})
	if err = errors.Join(err, l.replace(p)); err != nil {
		return nil, fmt.Errorf("httplimit: %w", err)
	}
	return l, nil
}

// Decision is the decision of one rule on a request.
type Decision struct {
	tb.Decision
	// Rule is the name of the rule. The name of its set is before it, as in "api/free", if
	// another set has a rule of that name.
	Rule  string
	Limit tb.Limit
	Cost  float64 // tokens; an estimate if the cost is in the response
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
	//   - 425 if the address is needed, and may be forged because the request is early data.
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
// It reports false if no wait helps, because the status is 400 or 425 or a cost can never fit, and
// if the request ended during a delay.
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
