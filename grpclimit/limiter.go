package grpclimit

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync/atomic"

	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Limiter applies a policy to gRPC calls. It is safe for concurrent use.
//
// UnaryServerInterceptor and StreamServerInterceptor limit calls, and MessageServerInterceptor
// limits the messages of streams. SetPolicy replaces the policy.
//
// The embedded Limiter has the counts of the rules, and StopWaiting, which must be called before
// grpc.Server.GracefulStop if the policy delays calls. Its Middleware limits HTTP requests by the
// same buckets, for a server that has both.
type Limiter struct {
	*httplimit.Limiter
	exempt     []string // methods
	sendFields bool
	last       atomic.Pointer[quota] // see quotaStatus
}

// PerAddress returns a limiter of capacity tokens for each client address, refilled at refillPerSec
// tokens a second, of which a call takes one. The name of its rule is "per-address". It panics if
// an argument or option is out of range.
func PerAddress(capacity int, refillPerSec float64, opts ...Option) *Limiter {
	limit, err := tb.LimitPerSecond(capacity, refillPerSec)
	if err != nil {
		panic(err)
	}
	rule := httplimit.Rule{Name: "per-address", Keys: []string{"ip:address"}, Limit: limit}
	l, err := New(httplimit.Rules(rule), opts...)
	if err != nil {
		panic(err)
	}
	return l
}

// New returns a limiter that applies p. The error joins everything that is wrong with the policy
// and the options, also fields that have no meaning for a gRPC call.
func New(p *httplimit.Policy, opts ...Option) (*Limiter, error) {
	s := settings{exempt: []string{healthCheck}, http: []httplimit.Option{
		httplimit.WithHeader(header),
		httplimit.WithExtractor(MethodKey, func(r *http.Request) string { return r.URL.Path }),
		httplimit.WithExtractor(ServiceKey, func(r *http.Request) string { return service(r.URL.Path) }),
	}}
	for _, o := range opts {
		o(&s)
	}
	l, err := httplimit.New(p, s.http...)
	for _, method := range s.exempt {
		if !fullName.MatchString(method) {
			err = errors.Join(err, fmt.Errorf("grpclimit: WithExempt: want /package.Service/Method, got %q",
				method))
		}
	}
	if foreign := check(p, s.exempt); foreign != nil {
		err = errors.Join(err, fmt.Errorf("grpclimit: %w", foreign))
	}
	if err != nil {
		return nil, err
	}
	return &Limiter{Limiter: l, exempt: s.exempt, sendFields: s.sendFields}, nil
}

// SetPolicy replaces the policy, as httplimit.Limiter.SetPolicy does. If p has an error, or a field
// that has no meaning for a gRPC call, the policy stays as it was. SetPolicy of the embedded
// Limiter does not look for such fields.
func (l *Limiter) SetPolicy(p *httplimit.Policy) error {
	if err := check(p, l.exempt); err != nil {
		return fmt.Errorf("grpclimit: the policy stays as it was: %w", err)
	}
	return l.Limiter.SetPolicy(p)
}

// Option configures a Limiter. The functions of this package whose names begin with With return
// options.
type Option func(*settings)

type settings struct {
	http       []httplimit.Option
	exempt     []string
	sendFields bool
}

// WithHTTPOptions sets options of the httplimit.Limiter: keys of the application, the clock, client
// addresses, hooks, a store and more.
//
// Functions get a request with RemoteAddr, Context and the full name of the method in URL.Path. Its
// Header is nil: metadata is in the context. Event.Writer is nil.
func WithHTTPOptions(opts ...httplimit.Option) Option {
	return func(s *settings) { s.http = append(s.http, opts...) }
}

// healthCheck is how probes and load balancers ask whether a server is healthy. A refusal would
// make them restart the server, or take it away.
const healthCheck = "/grpc.health.v1.Health/Check"

// fullName matches the full name of a method.
var fullName = regexp.MustCompile(`^/.+/[^/]+$`)

// WithExempt exempts the calls of methods from all rules, as the calls of
// grpc.health.v1.Health/Check always are. They take no tokens, neither at their start nor for their
// messages, and no count has them. The names are full, as in "/package.Service/Method". A rule for
// an exempt method alone is an error.
func WithExempt(methods ...string) Option {
	return func(s *settings) { s.exempt = append(s.exempt, methods...) }
}

// WithFields sends the fields RateLimit, RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset
// as header metadata of each limited call, and Retry-After with a refusal. It is for gateways that
// pass header metadata on to clients of HTTP. httplimit.WithFields says which of the fields are
// sent.
//
// The retry policy of a gRPC client does not retry a call with header metadata.
func WithFields() Option { return func(s *settings) { s.sendFields = true } }
