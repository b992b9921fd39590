package httplimit

import (
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/seed-181794aa/ratelimit/httplimit/policy"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Option configures a Limiter. The functions of this package whose names begin with With return
// options.
type Option func(*settings) error

type settings struct {
	limiterOptions []tb.Option
	clock          func() time.Time
	store          Store
	extractors     map[string]func(*http.Request) string
	header         func(r *http.Request, name string) []string
	findExtractor  func(key string) (func(*http.Request) string, error) // may be nil
	claims         func(*http.Request) map[string]any                   // nil for none
	usage          Usage
	address        addressFinder
	hooks          Hooks
	foldPaths      bool
	failClosed     bool
	inContext      bool
	answer         func(http.ResponseWriter, *http.Request, *Refusal) // or nil
	timeout        time.Duration
	maxKeys        int // of a table
	liveSettings
}

// liveSettings are the settings that SetFields and SetSharedSecret change while requests are
// served. SetPolicy keeps them.
type liveSettings struct {
	fields Fields
	shared string // the text of WithSharedSecret
}

func (s *settings) apply(opts []Option) error {
	s.extractors = map[string]func(*http.Request) string{}
	s.header = func(r *http.Request, name string) []string { return r.Header[name] }
	s.claims = func(r *http.Request) map[string]any {
		claims, _ := r.Context().Value(claimsKey{}).(map[string]any)
		return claims
	}
	s.timeout = defaultTimeout
	var errs []error
	for _, o := range append([]Option{WithClientAddress(ClientAddress{})}, opts...) {
		errs = append(errs, o(s))
	}
	switch s.store.(type) {
	case nil:
		s.store = Memory(s.limiterOptions...)
	case memory: // is never late
	default:
		s.store = remote{s.store, s.timeout}
	}
	o, err := tb.Apply(s.limiterOptions...)
	s.maxKeys = o.MaxKeys
	if s.clock = o.Now; s.clock == nil {
		s.clock = time.Now
	}
	return errors.Join(append(errs, err)...)
}

func with(change func(*settings)) Option { return withValid(true, "", change) }

// withValid returns an option that is an error with a text unless its arguments are valid.
func withValid(valid bool, text string, change func(*settings)) Option {
	return func(s *settings) error {
		if !valid {
			return errors.New(text)
		}
		change(s)
		return nil
	}
}

// WithLimiterOptions sets options of the limiters that tb/cas makes, one for each rule: the
// clock, the most keys, and what happens to a new key when the table is full.
func WithLimiterOptions(opts ...tb.Option) Option {
	return with(func(s *settings) { s.limiterOptions = append(s.limiterOptions, opts...) })
}

// WithStore keeps the buckets of all rules in a store, which several processes can share. A request
// asks the store once for all enforced rules that apply to it, and once more for each shadow rule.
// docs/redis.md says how tb/redis differs from a Memory.
func WithStore(store Store) Option {
	return withValid(store != nil, "WithStore: want a store", func(s *settings) { s.store = store })
}

// WithExtractor adds a key for limit_keys and match, such as "tenant", or replaces one. In
// "header:X-Tenant" upper and lower case are the same. A value of "" means that the request
// lacks the key. The function must be safe for concurrent use.
func WithExtractor(key string, value func(*http.Request) string) Option {
	return withValid(key != "" && value != nil, "WithExtractor: want a key and a function",
		func(s *settings) { s.extractors[policy.CanonicalKey(key)] = value })
}

// WithHeader sets where the values of a header field come from, for requests that are not of
// net/http. The name is in canonical form. The default is Request.Header. The function must be safe
// for concurrent use.
func WithHeader(values func(r *http.Request, name string) []string) Option {
	return withValid(values != nil, "WithHeader: want a function",
		func(s *settings) { s.header = values })
}

// WithExtractors is WithExtractor for the keys for which find returns a function, such as the
// placeholders of a server. The keys of WithExtractor come first. An error says what is wrong with
// a key, and becomes an error of the policy with the path of the key.
func WithExtractors(find func(key string) (func(*http.Request) string, error)) Option {
	return with(func(s *settings) { s.findExtractor = find })
}

// WithClaims sets where the claims of a request's token come from. The claims must have been
// verified. The default is the claims of ContextWithClaims.
func WithClaims(claims func(*http.Request) map[string]any) Option {
	return withValid(claims != nil, "WithClaims: want a function",
		func(s *settings) { s.claims = claims })
}

// WithoutClaims says that the application supplies no claims. Then a jwt: key is an error in a
// policy without "jwt": "unverified", because no request would have the key.
func WithoutClaims() Option { return with(func(s *settings) { s.claims = nil }) }

// WithClientAddress sets how the address of the client is found.
func WithClientAddress(c ClientAddress) Option {
	return func(s *settings) (err error) {
		s.address, err = c.finder()
		return err
	}
}

// WithFoldedPaths makes selectors ignore the letter case of paths. It is for a server whose router
// does so: otherwise a client would get past the rules of /login with /LOGIN.
func WithFoldedPaths() Option { return with(func(s *settings) { s.foldPaths = true }) }

// WithContext passes the decision on a granted request to its handler, for FromContext. Without it
// Middleware does not copy the request, and takes a quarter less time.
func WithContext() Option { return with(func(s *settings) { s.inContext = true }) }

// WithHooks sets functions that are called with decisions.
func WithHooks(h Hooks) Option { return with(func(s *settings) { s.hooks = h }) }

// Fields says which fields responses have. The zero Fields has RateLimit and the three older fields
// in all responses, and no other.
type Fields struct {
	// OnlyRefused sends fields only with refusals. A granted request is then cheaper, because
	// net/http copies, sorts and writes each field of a response.
	OnlyRefused bool
	// Policy sends RateLimit-Policy, with the limits of the rules that apply.
	Policy bool
	// XRateLimit sends X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset, for clients
	// that read no other fields. Reset is the Unix second at which the bucket is full, or the end of
	// Retry-After if that is later.
	XRateLimit bool
	// Reason is the name of a field in responses with status 429, whose value is
	// token_bucket_exceeded. "" means that there is none.
	Reason string
}

var fieldName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (f *Fields) prepare() error {
	if f.Reason != "" && !fieldName.MatchString(f.Reason) {
		return errors.New("Fields.Reason: want A-Z a-z 0-9 _ - or nothing")
	}
	f.Reason = http.CanonicalHeaderKey(f.Reason)
	return nil
}

// WithFields sets which fields responses have. Limiter.SetFields changes it.
func WithFields(f Fields) Option {
	return func(s *settings) error {
		s.fields = f
		return s.fields.prepare()
	}
}

// WithSharedSecret sets a text for all processes that serve the same clients. The jitter of each
// client's Retry-After is derived from it, so it must be kept private. Limiter.SetSharedSecret
// changes it.
func WithSharedSecret(text string) Option { return with(func(s *settings) { s.shared = text }) }

// WithRefusal lets the application answer the requests that are not granted, in place of the
// problem document. The fields of the limiter and Cache-Control are set already. The function must
// write the status, which is usually Refusal.Status. A client that has disconnected gets no answer.
func WithRefusal(answer func(w http.ResponseWriter, r *http.Request, refusal *Refusal)) Option {
	return with(func(s *settings) { s.answer = answer })
}

const defaultTimeout = time.Second

// WithTimeout sets how long a request waits for a Store. The default is a second, and 0 means no
// limit. A store that does not answer in time has failed: see WithFailClosed. The context of
// Store.TakeAll has this deadline and the values of the request's context, but neither the deadline
// nor the cancellation that the client may choose.
func WithTimeout(d time.Duration) Option {
	return withValid(d >= 0, "WithTimeout: want 0 or more", func(s *settings) { s.timeout = d })
}

// WithFailClosed answers 503 if a Store cannot decide. By default the request passes.
func WithFailClosed() Option { return with(func(s *settings) { s.failClosed = true }) }

// Hooks are called with decisions, in the goroutine of the request and before the request is
// passed on or answered. They must be safe for concurrent use. A panic ends the request. A hook
// that is nil costs nothing.
type Hooks struct {
	// Granted is called for each granted request that an enforced rule applied to and decided, with
	// the decision of the binding rule: see Limiter.Decide.
	Granted func(*http.Request, Event)
	// Delayed is called for each request that is about to wait, with the decision of the rule with
	// the longest delay. The request may be refused or end after all.
	Delayed func(*http.Request, Event)
	// Refused is called for each request that is refused with 429 or 400, with the decision of the
	// binding rule: see Limiter.Decide. It is not called for 425, 499 and 503. With 400,
	// RetryAfter is tb.Never.
	Refused func(*http.Request, Event)
	// Shadow is called for each shadow rule that applies to a granted request, with the
	// decision that the rule would have made.
	Shadow func(*http.Request, Event)
	// Error is called once for a request that its enforced rules could not decide, with the first of
	// them, and once for each such shadow rule. After the response it is called for each rule that
	// could not settle its cost.
	Error func(*http.Request, Event)
}

// Event is the argument of a hook.
type Event struct {
	Decision
	// Key has the parts of the bucket's key, in the order of Rule.Keys. It is empty if the rule has
	// one bucket for all requests. The values may be secrets. FormatKey makes text of a key.
	Key    []KeyPart
	Shadow bool  // the rule is a shadow rule
	Err    error // of Hooks.Error, or nil
	// Writer is the ResponseWriter of the request. A hook may add header fields. It is nil if
	// Limiter.Take decides.
	Writer http.ResponseWriter
}
