// Package rls implements `tb-rls`: a rate limit service for Envoy, with the configuration of
// github.com/envoyproxy/ratelimit.
//
// service.go has the service, state.go what a configuration in force consists of, call.go and
// take.go one request, and response.go and fields.go its answer. command.go and run.go start,
// reload and stop the server.
package rls

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-181794aa/ratelimit/cmd/internal/rls/config"
	"github.com/seed-181794aa/ratelimit/httplimit"
	"github.com/seed-181794aa/ratelimit/tb"
)

// Config configures a Service.
type Config struct {
	Now            func() time.Time // nil for time.Now
	LimiterOptions []tb.Option      // of a Store in memory
	Store          httplimit.Store  // has the buckets; nil for httplimit.Memory of LimiterOptions
	StoreErrors    bool             // a request that the store does not decide has an error

	Shadow  bool   // refuse nothing
	Quota   bool   // each rule is a quota
	Weights bool   // several hits are the weight of a request, unless a rule has debt
	Fields  Fields // which answers have header fields
	// Names has the names of the fields of older drafts: the limit, what is left, and the reset. The
	// zero value stands for the fields of RateLimit.
	Names    [3]string
	Policy   bool // send RateLimit-Policy, too
	X        bool // send X-RateLimit fields, too
	Metadata bool // send dynamic metadata

	Log     *slog.Logger  // must be throttled; nil for none
	Refused func(Refusal) // is called for each rule that refuses; may be nil
}

// Refusal is a refusal of a rule.
type Refusal struct {
	Domain, Rule string
	Descriptor   []*config.Entry
	// Level returns the limit and the level of the bucket, or an error if the rule is not in force.
	// It is nil if the bucket is not in memory.
	Level func() (tb.Limit, tb.Level, error)
}

// Service implements ratelimit.RateLimitServiceServer. It is safe for concurrent use.
type Service struct {
	Config
	ratelimit.UnimplementedRateLimitServiceServer

	state    atomic.Pointer[state]
	changing sync.Mutex // is held by a change of state
	calls    sync.Pool
	counts   serviceCounts
}

// New returns a service without limits.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Store == nil {
		c.Store = httplimit.Memory(append([]tb.Option{tb.WithClock(c.Now)}, c.LimiterOptions...)...)
	}
	if c.Names == [3]string{} {
		c.Names = namesOf("RateLimit")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{Config: c}
	s.calls.New = func() any { return &call{service: s} }
	s.state.Store(&state{config: &config.Config{}})
	return s
}

// Bounds on a request. Envoy sends one descriptor for each action list of a route.
const (
	maxDescriptors = 100
	maxEntries     = 100 // of all descriptors with a limit of their own
)

// check returns an error for a request that has no answer.
func check(r *ratelimit.RateLimitRequest) error {
	switch n := len(r.GetDescriptors()); {
	case r.GetDomain() == "":
		return status.Error(codes.InvalidArgument, "domain: want a name")
	case n == 0:
		return status.Error(codes.InvalidArgument, "descriptors: want at least one")
	case n > maxDescriptors:
		return status.Errorf(codes.InvalidArgument, "descriptors: want at most %d", maxDescriptors)
	}
	return nil
}

// requestRepaired counts a request with a text that was not UTF-8.
func (s *Service) requestRepaired() {
	if s.counts.repaired.Add(1) == 1 {
		s.Log.Warn("a request has a text that is not UTF-8: each wrong byte is read as \\xff or so." +
			" tb_rls_repaired_requests_total counts such requests")
	}
}

// ShouldRateLimit implements ratelimit.RateLimitServiceServer. A granted request takes its hits
// from all enforced rules, and from each quota and shadow rule that has them. A refused request
// takes nothing but its reports: see kind.
func (s *Service) ShouldRateLimit(
	ctx context.Context, r *ratelimit.RateLimitRequest,
) (*ratelimit.RateLimitResponse, error) {
	if err := check(r); err != nil {
		s.counts.invalid.Add(1)
		return nil, err
	}
	if s.state.Load().rules == nil { // no limits would let every request pass
		s.counts.unconfigured.Add(1)
		return nil, status.Error(codes.Unavailable, "there is no configuration yet")
	}
	c := s.calls.Get().(*call)
	defer c.release()
	if err := c.match(r); err != nil {
		s.counts.invalid.Add(1)
		return nil, err
	}
	allowed, err := c.decide(ctx)
	if err != nil { // the store logs the outage
		s.counts.undecided.Add(1)
		return nil, status.Error(codes.Unavailable, "the rate limiter cannot decide")
	}
	c.count(allowed)
	return c.response(allowed), nil
}
