package httplimit

import (
	"errors"
	"net/http"
	"time"

	"github.com/seed-181794aa/ratelimit/tb"
)

// Option configures a Limiter. The options are the functions of this package that return
// one.
type Option func(*settings) error

type settings struct {
	core       []tb.Option
	clock      func() time.Time // nil for the monotonic clock
	newLimiter func(Rule) (tb.Limiter, error)
	extractors map[string]func(*http.Request) string
	claims     func(*http.Request) map[string]any
	address    addressFinder
	hooks      Hooks
	reason     string
	salt       string
	sendPolicy bool
	sendX      bool
	silent     bool
	failClosed bool
}

// DefaultReasonField is the field that says why a request was refused.
const DefaultReasonField = "X-Fairvisor-Reason"

func (s *settings) apply(opts []Option) error {
	s.reason = DefaultReasonField
	s.extractors = map[string]func(*http.Request) string{}
	s.claims = claimsFrom
	var errs []error
	for _, o := range append([]Option{WithClientAddress(ClientAddress{})}, opts...) {
		errs = append(errs, o(s))
	}
	core, err := tb.Apply(s.core...)
	s.clock = core.Now
	return errors.Join(append(errs, err)...)
}

// WithLimiterOptions sets options of the limiters of tb/cas, of which each rule has one: the
// clock, how many keys a limiter holds at most, and what it does with more.
func WithLimiterOptions(opts ...tb.Option) Option {
	return func(s *settings) error {
		s.core = append(s.core, opts...)
		return nil
	}
}

// WithLimiter makes limiters by newLimiter, which is called once for each rule that is
// new, instead of those of tb/cas. The limiter of a rule is passed that rule's keys only.
//
// A *cas.TokenBucket and a Charger take part in all or nothing. They must have the clock
// of WithLimiterOptions. Of any other tb.Limiter only AllowN is known, which cannot be undone. Such
// rules are asked when the rest has been checked and before it is charged, in the order of
// the policy. If one refuses, or fails, the rest is not charged; but what other such
// limiters have granted before it stays taken, and so does what all of them have granted
// if meanwhile another request took what had been checked. Their costs are whole tokens:
// fractions are rounded up.
func WithLimiter(newLimiter func(Rule) (tb.Limiter, error)) Option {
	return func(s *settings) error {
		s.newLimiter = newLimiter
		return nil
	}
}

// WithExtractor adds a key for limit_keys and match, such as "tenant", or replaces one (in
// "header:X-Tenant", upper and lower case are the same). An
// empty value means that the request lacks the key. The function must be safe for
// concurrent use.
func WithExtractor(key string, value func(*http.Request) string) Option {
	return func(s *settings) error {
		if key == "" || value == nil {
			return errors.New("WithExtractor: want a key and a function")
		}
		s.extractors[canonical(key)] = value
		return nil
	}
}

// WithClaims sets where the claims of a request's token come from: they must have been
// verified. The default is ContextWithClaims.
func WithClaims(claims func(*http.Request) map[string]any) Option {
	return func(s *settings) error {
		if claims == nil {
			return errors.New("WithClaims: want a function")
		}
		s.claims = claims
		return nil
	}
}

// WithClientAddress sets how the address of the client is found.
func WithClientAddress(c ClientAddress) Option {
	return func(s *settings) (err error) {
		s.address, err = c.finder()
		return err
	}
}

// WithHooks sets functions that are told of decisions.
func WithHooks(h Hooks) Option {
	return func(s *settings) error {
		s.hooks = h
		return nil
	}
}

// WithReasonField sets the name of the field that says why a request was refused. ""
// turns it off. The default is DefaultReasonField.
func WithReasonField(name string) Option {
	return func(s *settings) error {
		if name != "" && !partName.MatchString(name) {
			return errors.New("WithReasonField: want A-Z a-z 0-9 _ - or nothing")
		}
		s.reason = http.CanonicalHeaderKey(name)
		return nil
	}
}

// WithJitterSalt makes the jitter of Retry-After another one. All processes that serve
// the same clients should have the same salt.
func WithJitterSalt(salt string) Option {
	return func(s *settings) error {
		s.salt = salt
		return nil
	}
}

// WithPolicyField sends RateLimit-Policy, with the limits of the rules that apply.
func WithPolicyField() Option {
	return func(s *settings) error {
		s.sendPolicy = true
		return nil
	}
}

// WithXRateLimit sends X-RateLimit-Limit, -Remaining and -Reset, for clients that know
// nothing else. Reset is the Unix second at which the bucket is full.
func WithXRateLimit() Option {
	return func(s *settings) error {
		s.sendX = true
		return nil
	}
}

// WithSilentGrants sends fields only with refusals. A request that is granted is then
// cheaper, as net/http copies, sorts and writes each field of a response.
func WithSilentGrants() Option {
	return func(s *settings) error {
		s.silent = true
		return nil
	}
}

// WithFailClosed answers 503 if a limiter cannot decide. By default the request passes.
func WithFailClosed() Option {
	return func(s *settings) error {
		s.failClosed = true
		return nil
	}
}

// Hooks are told of decisions, in the goroutine of the request and before it is passed on
// or answered: they must be safe for concurrent use, and a panic ends the request. What
// is nil is not called, and costs nothing.
type Hooks struct {
	// Granted is told of each request that was granted and a rule applied to, with the
	// binding rule.
	Granted func(*http.Request, Event)
	// Refused is told of each request that was refused, with the binding rule. If the
	// request lacks a key that its rule insists on, RetryAfter is tb.Never.
	Refused func(*http.Request, Event)
	// Shadow is told of each shadow rule that applies to a request that was granted, and
	// what the rule would have answered.
	Shadow func(*http.Request, Event)
	// Error is told of each limiter that could not decide.
	Error func(*http.Request, Event)
}

// Event is what a hook is told.
type Event struct {
	Decision
	// Key has the parts of the bucket's key, in the order of Rule.Keys. It is empty if
	// the rule has one bucket for all requests. The values may be secrets.
	Key    []KeyPart
	Shadow bool
	Err    error // of Hooks.Error
}
